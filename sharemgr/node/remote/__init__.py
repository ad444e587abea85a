"""Who has what on this node, told over TCP to those whose certificates say that they may know. It is loaded only where
it is configured."""
