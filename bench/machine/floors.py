"""The machine's own floors: what passing a word between two processes takes, with no edgeshare in it."""

import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

from bench.compiler import compile_program
from bench.figures import percentile
from bench.measurement import Bench, Effort, Measurement
from bench.report import Row
from edgeshare.contract.units import NS_PER_MS, NS_PER_US

PAUSES_US = {"back to back": 0, "after 2.5 ms of sleep": 2_500}
"""How long each side sleeps before it passes the word on. Of two clients with slices of 5 ms each waits for
milliseconds at a time, so the second is nearer to a hand-over than the first."""

WAKES_PER_SAMPLE = 5
"""They are cheap, and the late ones rare."""

STALLED_S = 60
"""Longer than any of these can take; only to end a bench that hangs."""


class Floor:
    """The C program beside this file, built for this run."""

    def __init__(self, folder: Path) -> None:
        """Compiles it into ``folder``; raises Unavailable where that cannot be done."""
        self._program = compile_program(Path(__file__).with_name("floor.c"), folder)

    def wake_ns(self, samples: int) -> list[int]:
        """How late each of so many awakenings was, 1 ms apart."""
        command = [str(self._program), "wake", str(samples)]
        return self._numbers(subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=STALLED_S).stdout)

    def futex_ns(self, samples: int, pause_us: int) -> list[int]:
        """How long a futex's wake-up took, each."""
        return self._numbers(
            subprocess.run(
                [self._program, "futex", str(samples), str(pause_us)],
                stdout=subprocess.PIPE,
                check=True,
                timeout=STALLED_S,
            ).stdout
        )

    def relay_ns(self, samples: int, pause_us: int, python: bool) -> list[int]:
        """How long a packet was under way from one process through a relay to another, each."""
        left, left_of_relay = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        right, right_of_relay = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-m", "bench.machine.relay"] if python else [str(self._program), "relay"]
        with closing(left), closing(left_of_relay), closing(right), closing(right_of_relay):
            fds = (left_of_relay.fileno(), right_of_relay.fileno())
            relay = subprocess.Popen([*command, *map(str, fds)], pass_fds=fds)
            try:
                second = self._client(right, samples, pause_us, "second")
                first = self._client(left, samples, pause_us, "first")
            finally:
                for end in (left, left_of_relay, right, right_of_relay):
                    end.close()
            took = [*self._numbers(first.communicate(timeout=STALLED_S)[0])]
            took += self._numbers(second.communicate(timeout=STALLED_S)[0])
            relay.wait(timeout=STALLED_S)
        return took

    def _client(self, end: socket.socket, samples: int, pause_us: int, which: str) -> subprocess.Popen[bytes]:
        fd = end.fileno()
        return subprocess.Popen(
            [self._program, "client", str(fd), str(samples), str(pause_us), which],
            pass_fds=(fd,),
            stdout=subprocess.PIPE,
        )

    def _numbers(self, text: bytes) -> list[int]:
        return [int(line) for line in text.split()]


def measurements(effort: Effort) -> list[Measurement]:
    """One for each way to pass the word on, for each pause."""
    ways: dict[str, Callable[[Floor, int, int], list[int]]] = {
        "futex wake": Floor.futex_ns,
        "two-hop relay in C": partial(Floor.relay_ns, python=False),
        "two-hop relay in Python": partial(Floor.relay_ns, python=True),
    }
    return [
        Measurement("floor: awakenings", partial(measure_wakes, effort)),
        *(
            Measurement(f"floor: {name}, {pause}", partial(measure, effort, name, take, pause))
            for pause in PAUSES_US
            for name, take in ways.items()
        ),
    ]


def measure_wakes(effort: Effort, bench: Bench) -> list[Row]:
    """How late the machine wakes who sleeps: nothing on it can hand over faster, or lose less time."""
    floor = Floor(bench.folder)
    runs = [floor.wake_ns(WAKES_PER_SAMPLE * effort.floor_samples) for _ in range(effort.floor_runs)]
    rows = [
        Row(f"floor: late awakening, p{percent}", "us", [percentile(run, percent) / NS_PER_US for run in runs])
        for percent in (50, 99)
    ]
    lost = [100 * sum(late for late in run if late > NS_PER_MS) / (len(run) * NS_PER_MS + sum(run)) for run in runs]
    return [*rows, Row("floor: time lost in awakenings over 1 ms late", "%", lost)]


def measure(
    effort: Effort, name: str, take: Callable[[Floor, int, int], list[int]], pause: str, bench: Bench
) -> list[Row]:
    """p50 and p99 of one way."""
    floor = Floor(bench.folder)
    runs = [take(floor, effort.floor_samples, PAUSES_US[pause]) for _ in range(effort.floor_runs)]
    return [
        Row(
            f"floor: {name}, p{percent}",
            "us",
            [percentile(run, percent) / NS_PER_US for run in runs],
            {"words": pause},
        )
        for percent in (50, 99)
    ]
