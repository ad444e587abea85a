"""What every workload does: it warms up, says so, runs until it is told to stop, and says what it did.

On stdin come the lines ``go``, ``mark`` (count from now on) and ``stop``; on stdout go JSON objects, one a line.
Nothing but the standard library is imported here: a workload runs in whatever Python has its framework.
"""

import argparse
import json
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

GROUP = 10
"""Steps between two events, and between two waits: a training loop looks at its loss that often."""
WARM_UP_GROUPS = 3
CHECKED_STEPS = 20


class Work(Protocol):
    """One program's work on the GPU."""

    def step(self) -> None:
        """Submits one step, and does not wait for it."""

    def event(self) -> Any:
        """Something that is done when all that was submitted so far is done."""

    def wait(self, event: Any) -> None:
        """Waits until it is done."""

    def between_ms(self, begin: Any, end: Any) -> float | None:
        """The GPU's time from one event to another; None where the framework cannot say."""

    def take(self, mib: int) -> Any:
        """Memory, by the framework's own allocator."""

    def refused(self, error: Exception) -> bool:
        """Whether this is the framework's way to say that there is no more memory."""

    def memory_mib(self) -> tuple[int, int]:
        """(free, total) as the framework reports it."""

    def checksum(self) -> float:
        """Of what the steps have computed."""


class Orders:
    """What the harness says, read by a thread of its own so that no step waits for it."""

    def __init__(self) -> None:
        self.going = threading.Event()
        self.stopped = threading.Event()
        self.marked = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        said = {"go": self.going, "mark": self.marked, "stop": self.stopped}
        for line in sys.stdin:
            said[line.strip()].set()
        # A harness that is gone wants nothing any more.
        for event in said.values():
            event.set()


def say(**answer: Any) -> None:
    print(json.dumps(answer), flush=True)


def percentile(sorted_values: list[float], percent: float) -> float | None:
    """None of nothing."""
    if not sorted_values:
        return None
    return sorted_values[min(len(sorted_values) - 1, int(len(sorted_values) * percent / 100))]


def train(work: Work, orders: Orders) -> dict[str, Any]:
    """Steps as fast as they go; one group is queued while the one before it runs."""
    steps, begin_s = 0, time.monotonic()
    groups_ms: list[float] = []
    before: tuple[Any, Any] | None = None
    while not orders.stopped.is_set():
        if orders.marked.is_set():
            orders.marked.clear()
            steps, begin_s, groups_ms = 0, time.monotonic(), []
        begin = work.event()
        for _ in range(GROUP):
            work.step()
        end = work.event()
        if before:
            work.wait(before[1])
            group_ms = work.between_ms(*before)
            if group_ms is not None:
                groups_ms.append(group_ms)
        before = begin, end
        steps += GROUP
    if before:
        work.wait(before[1])
    seconds = time.monotonic() - begin_s
    groups_ms.sort()
    step_ms = groups_ms[len(groups_ms) // 2] / GROUP if groups_ms else None
    return {"steps": steps, "seconds": seconds, "step_ms": step_ms}


def serve(work: Work, orders: Orders, every_ms: float) -> dict[str, Any]:
    """A request at each multiple of ``every_ms``; its latency counts from then on, however late it was begun."""
    latencies_ms: list[float] = []
    next_s = begin_s = time.monotonic()
    while not orders.stopped.wait(max(0.0, next_s - time.monotonic())):
        if orders.marked.is_set():
            orders.marked.clear()
            latencies_ms, begin_s = [], time.monotonic()
        work.step()
        work.wait(work.event())
        latencies_ms.append((time.monotonic() - next_s) * 1000)
        next_s += every_ms / 1000
    seconds = time.monotonic() - begin_s
    latencies_ms.sort()
    return {
        "steps": len(latencies_ms),
        "seconds": seconds,
        "p50_ms": percentile(latencies_ms, 50),
        "p99_ms": percentile(latencies_ms, 99),
    }


def fill(work: Work, block_mib: int) -> dict[str, Any]:
    """Takes blocks until it is refused."""
    blocks: list[Any] = []
    error_text = ""
    while not error_text:
        try:
            blocks.append(work.take(block_mib))
        except Exception as error:
            if not work.refused(error):
                raise
            error_text = f"{type(error).__name__}: {error}"
    free_mib, total_mib = work.memory_mib()
    return {
        "taken_mib": len(blocks) * block_mib,
        "free_mib": free_mib,
        "total_mib": total_mib,
        "error": error_text.splitlines()[0],
    }


def check(work: Work) -> dict[str, Any]:
    """What a fixed number of steps computes."""
    for _ in range(CHECKED_STEPS):
        work.step()
    work.wait(work.event())
    return {"checksum": work.checksum()}


def main(make: Callable[[str], Work]) -> None:
    """Runs the workload as the command line says; ``make`` gets the kind of step."""
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=["train", "serve", "fill", "check"])
    parser.add_argument("--kind", default="eager")
    parser.add_argument("--every-ms", type=float, default=50.0)
    parser.add_argument("--block-mib", type=int, default=64)
    options = parser.parse_args()
    orders = Orders()
    work = make(options.kind)
    if options.mode == "fill":
        say(**fill(work, options.block_mib))
        return
    if options.mode == "check":
        say(**check(work))
        return
    for _ in range(WARM_UP_GROUPS):
        for _ in range(GROUP):
            work.step()
        work.wait(work.event())
    say(ready=True)
    orders.going.wait()
    say(**(train(work, orders) if options.mode == "train" else serve(work, orders, options.every_ms)))
