"""The figures, measured: ``python -m bench`` from the repository's root."""
