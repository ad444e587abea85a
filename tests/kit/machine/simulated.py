"""A simulated machine and the programs that a test runs on it."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simgpu.create import create
from simgpu.environment import variables
from simgpu.machine import Machine
from simgpu.native import BURN
from simgpu.readings import Interval, Process

ROOT = Path(__file__).parents[3]
PATIENCE_S = 60
"""No test waits longer for anything; what is awaited takes milliseconds."""
MS = 1_000_000
MIB = 1 << 20


@dataclass
class Program:
    """A program that runs on the machine."""

    process: subprocess.Popen[str]

    def result(self) -> Any:
        """What it printed last, as JSON, once it has ended well."""
        out, err = self.process.communicate(timeout=PATIENCE_S)
        assert self.process.returncode == 0, err
        return json.loads(out.strip().splitlines()[-1])

    def failure(self) -> tuple[int, str]:
        """Its exit status and what it said on stderr."""
        _, err = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, err

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE_S)

    def line(self) -> str:
        """The next line that it prints."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


class Simulated:
    """A machine of the test's own."""

    def __init__(self, directory: Path, **plan: Any) -> None:
        create(directory, **plan)
        self.directory = directory
        self.machine = Machine(directory)
        self.programs: list[Program] = []

    def environment(self, **extra: str) -> dict[str, str]:
        known = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        return {**known, "PYTHONPATH": str(ROOT), **variables(self.directory, known), **extra}

    def start(self, *argv: object, **environment: str) -> Program:
        process = subprocess.Popen(
            [str(each) for each in argv],
            env=self.environment(**environment),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.programs.append(Program(process))
        return self.programs[-1]

    def burn(self, tag: str = "", *options: object, **environment: str) -> Program:
        return self.start(BURN, "--json", *options, **({"SIMGPU_TAG": tag} | environment))

    def python(self, script: str, **environment: str) -> Program:
        """Runs a script in which ``cu`` is the driver (driver_calls.py) and ``result(x)`` prints what the test gets."""
        prelude = "import ctypes, json, os, sys, time\nfrom tests.kit.machine.driver_calls import *\n"
        return self.start(sys.executable, "-W", "error", "-c", prelude + script, **environment)

    def process(self, tag: str) -> Process:
        """The one process of that tag."""
        (found,) = [each for each in self.machine.processes() if each.tag == tag]
        return found

    def until(self, condition: Callable[[], object]) -> None:
        """Waits for something that other processes bring about."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, "it never came about"
            time.sleep(0.002)

    def log(self, gpu: int = 0) -> list[Interval]:
        return self.machine.log(gpu)[0]

    def end(self) -> None:
        for program in self.programs:
            if program.process.poll() is None:
                program.process.kill()
            program.process.communicate()
