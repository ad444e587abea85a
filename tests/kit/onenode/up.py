"""Start the one-node Kubernetes, or what of it does not run, and say how it is used.

With --with-edgeshare, install this tree's edgeshare on it too.
"""

import argparse
import os
import time

from tests.kit.onenode.installed.release import install
from tests.kit.onenode.installed.workload import EXAMPLE
from tests.kit.onenode.layout import default_layout
from tests.kit.onenode.node import Node
from tests.kit.processes.command import say
from tests.kit.processes.script import main
from tests.kit.programs.binaries import KUBERNETES, program

ENVIRONMENT = "export KUBECONFIG={kubeconfig} PATH={programs}:$PATH"
NEXT = """
In a shell of yours, from this folder:

  {environment}
  kubectl describe node                      # edge/gpu-percent: 200, two simulated GPUs
  kubectl apply -f {example}
  kubectl --namespace edgeshare exec -it daemonset/edgeshare -- edgeshare status   # or: top

The node stays up until `make cluster-down`, which removes it and all that is on it."""


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
    environment = ENVIRONMENT.format(kubeconfig=kubeconfig, programs=program(KUBERNETES, "kubectl").parent)
    say(f"the node is Ready after {time.monotonic() - started_s:.1f} s")
    if not wanted.with_edgeshare:
        say(environment)
        return
    install(node)
    say(f"edgeshare is ready after {time.monotonic() - started_s:.1f} s")
    say(NEXT.format(environment=environment, example=os.path.relpath(EXAMPLE)))


if __name__ == "__main__":
    main(up)
