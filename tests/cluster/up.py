"""Start the one-node Kubernetes, or what of it does not run, and print where its kubeconfig is."""

import os
import time

from onenode.command import say
from onenode.layout import default_layout
from onenode.node import Node
from onenode.script import main


def up() -> None:
    """Bring the node up; whoever called sudo may read the kubeconfig."""
    started_s = time.monotonic()
    kubeconfig = Node(default_layout()).up()
    if owner := os.environ.get("SUDO_UID"):
        os.chown(kubeconfig, int(owner), -1)
    say(f"the node is Ready after {time.monotonic() - started_s:.1f} s; export KUBECONFIG={kubeconfig}")


if __name__ == "__main__":
    main(up)
