"""What ends a script with one line instead of a traceback."""


class NodeError(Exception):
    """Something outside the code is not as the node needs it; the text says what, where and what to do."""
