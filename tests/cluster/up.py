"""Start the one-node Kubernetes, or what of it does not run, and print where its kubeconfig is.

With --with-edgeshare, install this tree's edgeshare on it too.
"""

import argparse
import os
import time

from onenode.command import say
from onenode.layout import default_layout
from onenode.node import Node
from onenode.release import install
from onenode.script import main


def up() -> None:
    """Bring the node up; whoever called sudo may read the kubeconfig."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--with-edgeshare", action="store_true", help="build its image and install its chart")
    wanted = parser.parse_args()
    started_s = time.monotonic()
    node = Node(default_layout())
    kubeconfig = node.up()
    if owner := os.environ.get("SUDO_UID"):
        os.chown(kubeconfig, int(owner), -1)
    say(f"the node is Ready after {time.monotonic() - started_s:.1f} s; export KUBECONFIG={kubeconfig}")
    if wanted.with_edgeshare:
        install(node)


if __name__ == "__main__":
    main(up)
