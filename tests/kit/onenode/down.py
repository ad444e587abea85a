"""Stop the one-node Kubernetes and remove everything of it but the logs."""

from tests.kit.onenode.layout import default_layout
from tests.kit.onenode.node import Node
from tests.kit.processes.command import say
from tests.kit.processes.script import main


def down() -> None:
    """Take the node down, and say so."""
    node = Node(default_layout())
    node.down()
    say(f"no node is up; the last one's logs: {node.layout.logs}")


if __name__ == "__main__":
    main(down)
