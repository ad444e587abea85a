"""What the cluster's devices are used for, told to those who may know: asked of the nodes' managers when somebody asks.

Begin with ``cluster_status``, the service. ``directory`` is which nodes there are and whom to ask there, pure,
``asking`` asks, ``rights`` is who may know, and ``query`` what of a node is shown to whom, pure. Every replica serves
it, whichever leads: of the assigner nothing is used but its configuration, how the API server is followed, and the
words for a fault in what it tells.
"""
