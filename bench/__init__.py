"""The figures, measured: ``python -m bench`` from the repository's root.

``hook/``: what the hook adds to a call. ``node/``: what clients that share a GPU get. ``machine/``: what the machine
itself takes. ``assigner/``, ``cluster/``: what it takes to place pods. ``page/``: how soon a large cluster's page is
seen. They measure on a ``stage``, as ``measurement`` says, make numbers of what was executed with ``figures``, and tell
them as ``report`` does. Begin with ``__main__``.
"""
