"""A machine whose use is watched: a tree with a Jetson's files and a ``tegrastats`` that prints what the test says, a
simulated driver, and the process that watches."""

import os
import re
import select
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import yaml
from prometheus_client.parser import text_string_to_metric_families

from simgpu import environment
from simgpu.create import create
from simgpu.trees import JETSONS, add_jetson
from tests.kit.processes import forked

PATIENCE_S = 30
"""No test waits longer for anything; what is awaited takes milliseconds, or as long as a reading is news."""

SERIAL = "1421919056789"

LINE = (
    "05-09-2026 18:42:09 RAM 3000/7620MB (lfb 2x4MB) SWAP 0/3810MB (cached 0MB) CPU [15%@1510,off] EMC_FREQ 4%@2133 "
    "GR3D_FREQ 37%@[611] NVDEC off VIC 35%@115 APE 174 cpu@52.5C gpu@49.25C tj@52.5C VDD_IN 4800mW/6100mW "
    "VDD_CPU_GPU_CV 1280mW/2300mW VDD_SOC 1240mW/1390mW"
)

Samples = dict[str, float]
"""By name, with the labels' values in the order of their names: ``edgeshare_accelerator_tool_up,nvml``."""


class Watcher:
    """A running watch."""

    def __init__(self, process: forked.Forked, log: Path) -> None:
        self.process = process
        self._log = log
        assert process.stdout is not None
        self.ready = process.stdout.readline().strip()
        assert self.ready, self.log()
        found = re.search(r"http://(127\.0\.0\.1:\d+)/metrics$", self.ready)
        assert found is not None, self.ready
        self.address = found[1]

    def log(self) -> str:
        return self._log.read_text()

    def get(self, path: str = "/metrics") -> str:
        with urlopen(f"http://{self.address}{path}", timeout=PATIENCE_S) as answer:
            return str(answer.read().decode())

    def samples(self) -> Samples:
        """What the page says, without what the process says of itself."""
        return {
            ",".join([sample.name, *(sample.labels[name] for name in sorted(sample.labels))]): sample.value
            for family in text_string_to_metric_families(self.get())
            for sample in family.samples
            if sample.name.startswith("edgeshare_")
        }

    def until(self, holds: Callable[[Samples], bool]) -> Samples:
        """The first page for which something holds."""
        deadline_s = time.monotonic() + PATIENCE_S
        while not holds(samples := self.samples()):
            assert time.monotonic() < deadline_s, (samples, self.log())
            # A page tells nobody that it has changed, so that it has to be asked for again.
            time.sleep(0.05)
        return samples

    def end(self) -> int:
        self.process.terminate()
        return self.process.wait(PATIENCE_S)


class Tegrastats:
    """A program of that name, a real one, that prints what is written into a pipe."""

    def __init__(self, path: Path, after: str) -> None:
        self._told = path.with_name("told")
        # Each run has a pipe of its own: one that is being ended may read for a while yet beside the next.
        pipe = path.with_name("lines")
        write_program(path, f"mkfifo {pipe}.$$\necho {pipe}.$$ $$ $@ > {self._told}\ncat {pipe}.$$\n{after}\n")
        os.mkfifo(self._told)
        self._runs: list[Run] = []

    def started(self) -> "Run":
        """Waits until one is that was not there before."""
        pipe, pid, *arguments = self._told.read_text().split()
        self._runs.append(Run(Path(pipe), int(pid), arguments))
        return self._runs[-1]

    def close(self) -> None:
        for run in self._runs:
            run.close()


class Run:
    """One run of it."""

    def __init__(self, pipe: Path, pid: int, arguments: list[str]) -> None:
        # Nothing is kept back, so that nothing is left to be written when it has ended.
        self._pipe = pipe.open("wb", buffering=0)
        self.pid = pid
        self.arguments = arguments

    def print(self, line: str) -> None:
        """Raises BrokenPipeError where it has ended."""
        self._pipe.write(f"{line}\n".encode())

    def print_until_it_ends(self) -> None:
        """Prints, again and again; raises BrokenPipeError when it has ended."""
        end_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < end_s:
            self.print(LINE)

    def end(self) -> None:
        """Lets it end by itself, and waits until it has."""
        process = os.pidfd_open(self.pid)
        self.close()
        assert ends(process), "it does not end"

    def close(self) -> None:
        self._pipe.close()


def ends(process: int) -> bool:
    """Whether the process of this pidfd, which is closed, ends in time; one that nobody asked for its status has."""
    try:
        return bool(select.select([process], [], [], PATIENCE_S)[0])
    finally:
        os.close(process)


def write_program(path: Path, script: str) -> None:
    """Makes a program of a shell's script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}")
    path.chmod(0o755)


class Machine:
    """The machine of one test."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.tree = root / "tree"
        self.tree.mkdir()
        self._programs: list[Tegrastats] = []
        self._driver: Path | None = None
        self._watchers: list[forked.Forked] = []

    def be_jetson(self, name: str = "orin-nano") -> None:
        add_jetson(self.tree, JETSONS[name], SERIAL)

    def tegrastats(self, after: str = "") -> Tegrastats:
        """Gives it that program; ``after`` is what its script does at its end."""
        self._programs.append(Tegrastats(self.tree / "usr/bin/tegrastats", after))
        return self._programs[-1]

    def simulate(self, **plan: Any) -> Path:
        """Gives it a driver and GPUs; arguments are those of ``simgpu.create.create``."""
        self._driver = self.root / "machine"
        create(self._driver, **plan)
        return self._driver

    @property
    def environment(self) -> dict[str, str]:
        # One that a machine has in fact would be found, too.
        bare = {key: value for key, value in os.environ.items() if key != "LD_LIBRARY_PATH"}
        return {**bare, **environment.variables(self._driver, bare)} if self._driver else bare

    def watch(self, **usage: Any) -> Watcher:
        config = self.root / "labeller.yaml"
        config.write_text(yaml.safe_dump({"metrics_address": "127.0.0.1:0", "usage": {"interval_s": 0.5} | usage}))
        log = self.root / "watch.log"
        with log.open("w") as stderr:
            arguments = ["labeller", "--watch-usage", "--config", str(config), "--root", str(self.tree)]
            process = forked.start(arguments, self.environment, stderr)
        self._watchers.append(process)
        return Watcher(process, log)

    def end(self) -> None:
        for process in self._watchers:
            if process.poll() is None:
                process.kill()
            process.communicate()
        for program in self._programs:
            program.close()
