"""What it takes to place pods: in a cluster (``python -m bench.cluster``: ``__main__``), in recorded ones
(``placement``), and with memory lent (``lending``)."""
