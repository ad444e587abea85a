"""A real GPU: programs side by side on it (`lab.py`), and what is measured of them (`measures.py`)."""
