"""Where a pod goes, of all nodes and their GPUs. Pure: begin with ``placing``; ``table`` is what is free, as arrays,
and
``policies`` say which place is best. It uses ``state`` and nothing else of the assigner.
"""
