"""The labeller as a program: run once, or running on."""

import signal
import subprocess
from pathlib import Path
from typing import IO

import yaml

from tests.kit.processes import forked

END_S = 30


class Labeller:
    """``edgeshare labeller`` of node n1, at a tree of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "root"
        self.root.mkdir()
        self.config = folder / "labeller.yaml"
        self.configure()

    def configure(self, **keys: object) -> None:
        """Writes its configuration."""
        settings = {"kubeconfig": str(self.folder / "kubeconfig"), "node_name": "n1", "namespace": "edgeshare"}
        self.config.write_text(yaml.safe_dump({**settings, "root": str(self.root), **keys}))

    @property
    def arguments(self) -> list[str]:
        """Of ``edgeshare``."""
        return ["labeller", "--config", str(self.config)]

    def once(self, *options: str) -> subprocess.CompletedProcess[str]:
        """Runs it to its end."""
        return forked.run([*self.arguments, *options], END_S)


class Running:
    """A labeller that runs on; its log is read line by line."""

    def __init__(self, process: forked.Forked, output: IO[str]) -> None:
        self._process = process
        self._output = output
        self.lines: list[str] = []

    def until(self, text: str) -> str:
        """The next line with this text."""
        for line in self._output:
            self.lines.append(line.rstrip())
            if text in line:
                return line
        raise AssertionError(f"it ended without {text!r}: {self.lines}")

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def end(self) -> int:
        """Ends it as the kubelet does; its exit status."""
        self.signal(signal.SIGTERM)
        self.lines += [line.rstrip() for line in self._output]
        return self._process.wait(END_S)
