"""A machine with EdgeTPUs, its manager, and programs that share them; what ran is told by the devices' own log."""

import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from edgeshare.contract.names import HOOK_LIBRARY
from edgeshare.v1.allocations_pb2 import AddAllocationRequest, Allocation
from edgeshare.v1.status_pb2 import ALLOCATION_STATE_HOLDING, AllocationStatus, NodeStatus
from simgpu.tpu import DRIVER, TPUBURN, Inference, add_tpus
from tests.kit.manager.busy import until_each_has
from tests.kit.manager.testbed import Manager, Testbed, share
from tests.kit.processes.waiting import PATIENCE_S

ROOT = Path(__file__).parents[3]
HOOK = ROOT / "cuda_hook" / HOOK_LIBRARY
PCIE = "0000:03:00.0"
USB = "1-1.2"
APEX = "/dev/apex_0"
PROGRAMS = Path(__file__).parent / "programs"


class Lab(Testbed):
    """A testbed with an EdgeTPU at PCIE, which is APEX, and one at USB."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.tpus = add_tpus(root / "machine", PCIE)
        self.driver = DRIVER
        self.usb_path = self.tpus.enumerate_usb(USB, 4, started=False)

    def manager(self, config: str = "", command: Sequence[str] = ()) -> Manager:
        root = self.tpus.folder
        return super().manager(
            f"{config}\nsysfs: {root}/sys\ninventory: {{sources: [nvml, edgetpu], root: {root}}}\n", command
        )

    def burn(
        self, name: str, *arguments: str, percent: int, limit: int = 100, tpu: str = PCIE, share_class: str = "batch"
    ) -> "subprocess.Popen[str]":
        """A program that infers under a share until it is ended."""
        options = ("--tpu", tpu, "--percent", str(percent), "--limit", str(limit), "--class", share_class)
        command = ("env", f"SIMGPU_TAG={name}", str(TPUBURN), "--seconds", "600", *arguments)
        return self.popen(*self.run_arguments(*options, "--", *command))

    def allocate(self, allocation_id: str, percent: int, device: str = PCIE) -> Path:
        """Adds an allocation that stays; returns its folder."""
        with self.calls() as client:
            # What a device plugin does.
            client._allocations.AddAllocation(
                AddAllocationRequest(
                    allocation=Allocation(id=allocation_id, device_ids=[device], request_percent=percent)
                ),
                timeout=PATIENCE_S,
            )
        return self.folder(allocation_id)

    def client(self, allocation_id: str, script: str, *arguments: str, **environment: str) -> "subprocess.Popen[str]":
        """Starts a Python program of the allocation's: the hook before it, the simulated kernel behind."""
        return self.start(allocation_id, [sys.executable, "-c", script, *arguments], **environment)

    def start(self, allocation_id: str, command: list[str], **environment: str) -> "subprocess.Popen[str]":
        """Starts any program of the allocation's."""
        process = subprocess.Popen(
            command,
            env={
                **self.environment,
                "LD_PRELOAD": f"{HOOK}:{DRIVER}",
                "EDGESHARE_TPU_HOOK_DIR": str(self.folder(allocation_id)),
                "EDGESHARE_HOOK_LOG": str(self.root / "hook.log"),
                "SIMGPU_TAG": allocation_id,
                "PYTHONPATH": str(ROOT),
                **environment,
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._processes.append(process)
        return process

    def inferred_until(self, names: Collection[str], least_ms: int) -> dict[str, int]:
        """What runs for each of these programs, in ns, from now until the last of them has so many ms."""
        begin_ns = time.monotonic_ns()

        def inferred() -> dict[str, int]:
            ran = dict.fromkeys(names, 0)
            for each in self.tpus.log():
                if each.tag in ran:
                    ran[each.tag] += max(0, each.end_ns - max(each.begin_ns, begin_ns))
            return ran

        return until_each_has(inferred, least_ms)

    def holder(self) -> Callable[[NodeStatus], bool]:
        """Holds once somebody has the device."""
        return lambda status: any(each.state == ALLOCATION_STATE_HOLDING for each in status.allocations)

    def share(self, allocation_id: str) -> AllocationStatus:
        return share(self.status(), allocation_id)


def line(process: "subprocess.Popen[str]") -> str:
    """The next line that a program prints; fails with what it complains of where it ends instead."""
    assert process.stdout is not None
    text = process.stdout.readline().strip()
    if not text:
        assert process.stderr is not None
        raise AssertionError(f"it ended: {process.wait(PATIENCE_S)} {process.stderr.read()}")
    return text


def tell(process: "subprocess.Popen[str]", text: str = "") -> None:
    """Gives a program a line."""
    assert process.stdin is not None
    process.stdin.write(text + "\n")
    process.stdin.flush()


def overlaps(log: list[Inference]) -> list[tuple[Inference, Inference]]:
    """Where two processes used one device at once."""
    ordered = sorted(log, key=lambda each: (each.device, each.begin_ns))
    pairs = itertools.pairwise(ordered)
    return [
        (one, other)
        for one, other in pairs
        if one.device == other.device and one.pid != other.pid and other.begin_ns < one.end_ns
    ]


def parsed(process: "subprocess.Popen[str]") -> Any:
    """What a program printed, as JSON."""
    return json.loads(line(process))
