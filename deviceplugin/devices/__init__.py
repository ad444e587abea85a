"""The devices of this node, as last seen and as shared: begin with ``scan``. It uses ``health``."""
