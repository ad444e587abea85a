"""What the cluster's devices are used for, told to those who may know: asked of the nodes' managers when somebody asks.

Begin with ``cluster_status``, the service. ``directory`` keeps which nodes there are and whom to ask there,
``managers`` asks, ``rights`` is who may know, and ``query`` what of a node is shown to whom, pure; ``page`` serves
people what ``page_feeds`` looks at. Every replica serves it, whichever leads: of the assigner nothing is used but its
configuration, and how the API server is followed.
"""
