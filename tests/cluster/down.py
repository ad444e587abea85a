"""Stop the one-node Kubernetes and remove everything of it but the logs."""

from onenode.command import say
from onenode.layout import default_layout
from onenode.node import Node
from onenode.script import main


def down() -> None:
    """Take the node down, and say so."""
    node = Node(default_layout())
    node.down()
    say(f"no node is up; the last one's logs: {node.layout.logs}")


if __name__ == "__main__":
    main(down)
