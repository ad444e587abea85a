"""How soon a client's work is off the GPU when its slice is called back."""

import socket
import time
from bisect import bisect_left
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from bench.figures import percentile
from bench.measurement import SCHEDULINGS, Bench, Effort, Measurement
from bench.report import Row, Target
from bench.stage import END_S, SPARE_S, Client, Laboratory
from cuda_hook import wire
from cuda_hook.gate import GatePages
from edgeshare.cli.run import hook_library
from edgeshare.contract.errors import Unavailable
from edgeshare.contract.names import HOOK_CONFIG, HOOK_DIR_VARIABLE, HOOK_SOCKET
from edgeshare.contract.units import MIB, NS_PER_MS, NS_PER_S, NS_PER_US
from simgpu.stage.executed import Interval

R = TypeVar("R", bound=wire.ClientRecord)

KERNELS = {
    "100": ("100 us", 0.1),
    "1000": ("1 ms", 1.0),
    "10000": ("10 ms", 10.0),
    "20:95,5000:5": ("95 % 20 us, 5 % 5 ms", 5.0),
}
"""As burn has them → for people, and the longest in ms."""

QUEUE_CAP_NS = NS_PER_MS // 2
SPARE_MS = 1.0
"""What the target adds to the cap on queued work and one kernel."""

SLICE_NS = 5 * NS_PER_MS
BETWEEN_NS = NS_PER_MS
WARM_UP = 10
"""First slices, in which the hook learns how long the kernels are."""

WELCOME = wire.Welcome(
    version=wire.VERSION,
    failure_policy=wire.FailurePolicy.OPEN,
    grace_ms=5_000,
    epoch=1,
    queue_cap_ns=QUEUE_CAP_NS,
    anticipation_ns=300 * NS_PER_US,
    memory_cap_bytes=4096 * MIB,
)


class Caller:
    """Stands in the manager's place for one client, grants it slices and calls them back: only who writes into the gate
    knows when. A context manager."""

    def __init__(self, folder: Path) -> None:
        """Listens in ``folder``, which becomes the client's EDGESHARE_HOOK_DIR."""
        folder.mkdir()
        (folder / HOOK_CONFIG).touch()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(str(folder / HOOK_SOCKET))
        self._listener.listen()
        self._listener.settimeout(END_S)
        self._pages = GatePages.create(WELCOME.epoch)
        self._client: socket.socket | None = None
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()
        self._pages.close_fds()
        if self._client is not None:
            self._client.close()

    def wait_for_work(self) -> None:
        """Welcomes the client, and returns when it asks for a slice."""
        try:
            self._client, _ = self._listener.accept()
        except TimeoutError as error:
            raise Unavailable("the client did not connect") from error
        self._client.settimeout(END_S)
        self._hear(wire.Hello)
        socket.send_fds(self._client, [wire.encode(WELCOME)], self._pages.fds)
        self._hear(wire.Request)

    def slice(self) -> tuple[int, int]:
        """Grants one and calls it back; returns when it did so, and when the client had given it back."""
        self._number += 1
        self._pages.open(self._number, True, time.monotonic_ns())
        # A slice lasts so long: nothing but the clock ends it.
        time.sleep(SLICE_NS / NS_PER_S)
        self._pages.close()
        revoked_ns = time.monotonic_ns()
        while self._hear(wire.Release).number != self._number:
            pass
        return revoked_ns, time.monotonic_ns()

    def _hear(self, kind: type[R]) -> R:
        """The next record of a kind. Whatever memory the client wants before, it gets."""
        assert self._client is not None
        while True:
            packet = self._client.recv(wire.RECORD_BYTES_MAX)
            if not packet:
                raise Unavailable("the client has left")
            record = wire.parse(packet)
            if isinstance(record, kind):
                return record
            if isinstance(record, wire.Reserve):
                self._client.send(wire.encode(wire.Reserved(record.number, WELCOME.memory_cap_bytes, True)))
            elif isinstance(record, wire.MemoryQuery):
                self._client.send(wire.encode(wire.MemoryInfo(record.number, WELCOME.memory_cap_bytes, 0)))


def measurements(effort: Effort) -> list[Measurement]:
    """One for each length of kernels: one client alone is on the GPU, so that the scheduling is all one."""
    return [
        Measurement(f"revoke to drained, kernels of {text}", partial(measure, effort, kernels, text, longest_ms))
        for kernels, (text, longest_ms) in KERNELS.items()
    ]


def measure(effort: Effort, kernels: str, text: str, longest_ms: float, bench: Bench) -> list[Row]:
    """From the moment when the gate's word is cleared to the end of the last kernel of the slice, as the GPU ran it."""
    laboratory = bench.laboratory(SCHEDULINGS[0])
    drains_ms, releases_ms = [], []
    for number in range(effort.drain_runs):
        folder = bench.folder / f"caller-{kernels}-{number}"
        slices, intervals = call_back(laboratory, folder, kernels, effort.drains)
        drains_ms.append(percentile(drained_ms(slices, intervals), 99))
        releases_ms.append(percentile([(released - revoked) / NS_PER_MS for revoked, released in slices], 99))
    target = Target(QUEUE_CAP_NS / NS_PER_MS + longest_ms + SPARE_MS)
    settings: dict[str, str | float] = {"kernels": text, "revokes": effort.drains}
    note = f"the manager hears of it (p99) {percentile(releases_ms, 50):.2f} ms after the revoke"
    return [Row("revoke until the device is drained, p99", "ms", drains_ms, settings, target=target, note=note)]


def call_back(
    laboratory: Laboratory, folder: Path, kernels: str, drains: int
) -> tuple[list[tuple[int, int]], list[Interval]]:
    """(Revoked, released) of each slice of a client that always has work, and what it executed."""
    cursor = laboratory.stage.machine.cursor(0)
    client = Client("called", kernels)
    environment = {HOOK_DIR_VARIABLE: str(folder), "LD_PRELOAD": str(hook_library())}
    slices = []
    argv = client.argv(SPARE_S)
    with Caller(folder) as caller, laboratory.started(client.name, argv, environment) as program:
        caller.wait_for_work()
        for _ in range(WARM_UP + drains):
            slices.append(caller.slice())
            # Shut for so long, as while another has its turn.
            time.sleep(BETWEEN_NS / NS_PER_S)
        program.check()
        intervals = laboratory.executed(0, cursor)
    return slices[WARM_UP:], intervals


def drained_ms(slices: list[tuple[int, int]], intervals: list[Interval]) -> list[float]:
    """For each (revoked, released) how long after the revoke the last that began before the release ended; 0: nothing
    ran any more."""
    begins_ns = [interval.begin_ns for interval in intervals]
    drains = []
    for revoked_ns, released_ns in slices:
        last = bisect_left(begins_ns, released_ns) - 1
        drains.append(max(0, intervals[last].end_ns - revoked_ns) / NS_PER_MS if last >= 0 else 0.0)
    return drains
