"""What `kubectl --watch` tells, as it tells it."""

import subprocess
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from tests.kit.onenode.node import Node


class KubectlWatch:
    """A context manager that hands on each line that `kubectl get … --watch` prints, in a thread of its own."""

    def __init__(self, node: Node, *words: str, template: str, line: Callable[[str], None]) -> None:
        self._command = node.kubectl_command("get", *words, "--watch", "-o", f"jsonpath={template}")
        self._line = line

    def __enter__(self) -> Self:
        self._kubectl = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True, bufsize=1)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._kubectl.terminate()
        self._kubectl.wait()
        self._reader.join()

    def _read(self) -> None:
        assert self._kubectl.stdout is not None
        with self._kubectl.stdout:
            for line in self._kubectl.stdout:
                self._line(line.strip())
