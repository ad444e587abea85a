"""Makes what the node is given later, and is slow to make: edgeshare's image; with --kubelets also each kubelet, where
the cache has it not."""

import argparse
import os
import sys
from collections.abc import Collection, Iterable

from tests.kit.onenode.images import project_image
from tests.kit.processes.script import main
from tests.kit.programs.binaries import KUBELETS, program

NICE = 10
"""What is needed last takes the time that nothing else wants."""


def command(tests: Iterable[Collection[str]]) -> list[str]:
    """What makes what is needed by tests with these fixtures; empty where that is nothing."""
    used = frozenset().union(*tests)
    if "edgeshare" not in used:
        return []
    return [sys.executable, "-m", "tests.kit.onenode.ahead", *(["--kubelets"] if "kubelet" in used else [])]


def ahead() -> None:
    """One after the other, what is needed first before the rest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubelets", action="store_true", help="make these, too")
    wanted = parser.parse_args()
    project_image()
    os.nice(NICE)
    for module in KUBELETS if wanted.kubelets else ():
        program(module, "kubelet")


if __name__ == "__main__":
    main(ahead)
