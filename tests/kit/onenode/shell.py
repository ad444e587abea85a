"""A shell of an administrator of the node, in which the documents' commands are typed."""

import os
import sys
from pathlib import Path

from tests.kit.deploy.blocks import ROOT, blocks
from tests.kit.onenode.node import Node
from tests.kit.processes.command import run
from tests.kit.programs.binaries import GRPCURL, HELM, KUBERNETES, program


class Shell:
    """Has kubectl, helm, grpcurl and edgeshare, and the node's kubeconfig."""

    def __init__(self, node: Node, folder: Path = ROOT) -> None:
        """``folder`` is where it stands: a checkout, if nothing else is said."""
        self._folder = folder
        programs = [program(KUBERNETES, "kubectl"), program(HELM, "helm"), program(GRPCURL, "grpcurl")]
        path = ":".join([*(str(each.parent) for each in (*programs, Path(sys.executable))), os.environ["PATH"]])
        self._environment = {**os.environ, "PATH": path, "KUBECONFIG": str(node.layout.kubeconfig)}

    def type(self, script: str, **variables: str) -> str:
        """What a script prints. Raises NodeError with what it says where a command of it fails."""
        return run(["bash", "-euo", "pipefail", "-c", script], env={**self._environment, **variables}, cwd=self._folder)


def block_with(page: str, text: str) -> str:
    """The one block of a page's commands that has this in it."""
    (found,) = (each.text for each in blocks() if (each.page, each.language) == (page, "sh") and text in each.text)
    return found
