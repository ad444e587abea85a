"""Stop the one-node Kubernetes and remove everything of it but the logs."""

from onenode.layout import default_layout
from onenode.node import Node
from onenode.script import main

if __name__ == "__main__":
    main(Node(default_layout()).down)
