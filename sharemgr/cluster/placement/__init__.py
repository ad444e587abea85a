"""Where a pod goes, of all nodes and their devices. Pure: begin with ``placers``, which has a ``placing`` for each kind
of device; ``table`` is what is free, as arrays, and ``policies`` say which place is best. It uses ``state`` and nothing
else of the assigner.
"""
