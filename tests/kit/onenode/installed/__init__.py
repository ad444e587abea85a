"""edgeshare on the node, as its users install it (`release.py`): its containers, its assigner, what it costs, what it
writes.
"""
