"""What the API server is told of this node, and asked for. Begin with ``cluster``."""
