"""What the API server is told of this node, and asked for: begin with ``cluster``. ``accelerator_node`` is what the
node's AcceleratorNode says, pure, and ``publishing`` keeps it so; ``assignments`` writes those that nobody else does,
``node`` the node's memory; ``removal`` takes it all from the cluster again. It uses ``allocations``, ``devices``,
``health``, ``pods`` and ``units``.
"""
