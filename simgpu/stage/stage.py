"""A simulated machine with the node's share manager on it: what the demo, and whoever measures, works on."""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from edgeshare.client import ManagerClient
from edgeshare.contract.errors import EdgeshareError, Unavailable
from simgpu.create import create
from simgpu.environment import variables
from simgpu.machine import Machine
from simgpu.native import BURN
from simgpu.stage.programs import EDGESHARE, LOOK_S, READY_S, Program, Programs

MODEL = "l4"

HIDING_VARIABLES = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
"""They say which of this machine's own GPUs programs may see; here they would hide simulated ones."""


@dataclass(frozen=True)
class Stage:
    """A machine, its manager, and the programs on it."""

    machine: Machine
    runtime_dir: Path
    client: ManagerClient
    programs: Programs
    manager: Program
    environment: Mapping[str, str]
    """In which a program finds the machine's driver."""

    def start(self, name: str, argv: list[str], environment: Mapping[str, str] | None = None) -> Program:
        """Starts a program, which the machine then knows by this name; more environment may be added."""
        own = {**self.environment, **(environment or {}), "SIMGPU_TAG": name}
        return self.programs.start(name, argv, own)


@contextmanager
def open_stage(folder: Path, logs: Path, scheduling: str = "fifo", gpus: int = 2) -> Iterator[Stage]:
    """Makes the machine in ``folder``, which is the caller's to remove, and starts its manager. On leaving,
    every program that was started on it ends. Raises Unavailable where the manager does not answer."""
    if not BURN.exists():
        raise Unavailable(f"{BURN} is not there: build it with 'make build', or install the wheel")
    create(folder / "machine", gpus=gpus, model=MODEL, scheduling=scheduling)
    machine = Machine(folder / "machine")
    ours = {name: value for name, value in os.environ.items() if name not in HIDING_VARIABLES}
    environment = ours | variables(machine.directory)
    runtime_dir = folder / "run"
    argv = [
        *EDGESHARE,
        "sharemgr",
        "node",
        "--runtime-dir",
        str(runtime_dir),
        "--state-dir",
        str(folder / "state"),
    ]
    with Programs(logs) as programs, ManagerClient(runtime_dir) as client:
        manager = programs.start("manager", argv, environment)
        wait_for_manager(client, manager)
        yield Stage(machine, runtime_dir, client, programs, manager, environment)


def wait_for_manager(client: ManagerClient, manager: Program) -> None:
    """Returns when the manager answers; raises Unavailable where it ends instead, or stays silent."""
    deadline_s = time.monotonic() + READY_S
    while True:
        try:
            client.status()
            return
        except EdgeshareError as error:
            if time.monotonic() > deadline_s:
                raise Unavailable(f"{error} (its log: {manager.log})") from error
        manager.status(wait_s=LOOK_S)
        manager.check()
