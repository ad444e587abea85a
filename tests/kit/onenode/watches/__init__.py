"""What goes on on the node, told as it happens."""
