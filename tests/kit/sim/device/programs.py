"""Programs that submit to a simulated device: without a pause, in loops, in bursts."""

import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from edgeshare.contract.units import NS_PER_MS, NS_PER_US

if TYPE_CHECKING:
    from tests.kit.sim.device.device_simulator import Simulation

MESSAGE_NS = 10 * NS_PER_US
BUCKET_NS = 100 * NS_PER_MS
LONE_QUEUE_NS = 5 * NS_PER_MS
"""GPU time that a program keeps queued while it is not contended."""
Times = Callable[[random.Random], int]


def constant(ns: int) -> Times:
    """Always the same time."""
    return lambda _: ns


def mixed(often_ns: int, seldom_ns: int, seldom_percent: int) -> Times:
    """Mostly one time, seldom another."""
    return lambda rng: seldom_ns if rng.random() * 100 < seldom_percent else often_ns


def exponential(mean_ns: int) -> Times:
    """As if by chance."""
    return lambda rng: max(1, round(rng.expovariate(1 / mean_ns)))


class Program:
    """One client of one allocation: what it does when its gate opens and closes. Subclasses say what it submits."""

    def __init__(self, simulation: "Simulation", allocation_id: str, client_id: int) -> None:
        self.simulation = simulation
        self.allocation_id = allocation_id
        self.client_id = client_id
        self.random = random.Random(f"{simulation.seed} {allocation_id} {client_id}")
        self.number = 0  # of the grant it has; 0: its gate is closed
        self.begun = False  # whether the device was free for it since
        self.contended = False
        self.buckets: list[int] = []  # GPU time executed in each BUCKET_NS
        self.unreported_ns = 0
        self.dead = False

    def begin(self, now_ns: int) -> None:
        """It starts."""
        raise NotImplementedError

    def opened(self, now_ns: int) -> None:
        """Its gate has opened."""
        raise NotImplementedError

    def closed(self, now_ns: int, number: int) -> None:
        """Its gate has closed; it owes a release of `number`."""
        raise NotImplementedError

    def request(self, now_ns: int) -> None:
        self.simulation.at(now_ns + MESSAGE_NS, self._requested)

    def release(self, now_ns: int, number: int, follows: bool) -> None:
        gpu_ns, self.unreported_ns = self.unreported_ns, 0
        self.simulation.at(now_ns + MESSAGE_NS, lambda at_ns: self._released(at_ns, number, gpu_ns, follows))

    def executed(self, begin_ns: int, end_ns: int) -> None:
        self.unreported_ns += end_ns - begin_ns
        last = (end_ns - 1) // BUCKET_NS
        if len(self.buckets) <= last:
            self.buckets += [0] * (last + 1 - len(self.buckets))
        for bucket in range(begin_ns // BUCKET_NS, last + 1):
            until_ns = min(end_ns, (bucket + 1) * BUCKET_NS)
            self.buckets[bucket] += until_ns - begin_ns
            begin_ns = until_ns

    def _requested(self, now_ns: int) -> None:
        if not self.dead:
            self.simulation.perform(self.simulation.arbiter.request(self.allocation_id, self.client_id, now_ns), now_ns)

    def _released(self, now_ns: int, number: int, gpu_ns: int, follows: bool) -> None:
        if not self.dead:
            arbiter = self.simulation.arbiter
            commands = arbiter.release(self.allocation_id, self.client_id, number, gpu_ns, follows, now_ns)
            self.simulation.perform(commands, now_ns)


class Saturating(Program):
    """Always has the next kernel ready, but for its pauses."""

    def __init__(
        self,
        simulation: "Simulation",
        allocation_id: str,
        client_id: int,
        *,
        kernel: Times | int,
        pauses: Sequence[tuple[int, int]] = (),
        foretells: bool = False,
    ) -> None:
        super().__init__(simulation, allocation_id, client_id)
        self.kernel = kernel
        self.foretells = foretells  # whether it says when it will have drained
        self.pauses = pauses
        self.pausing = False
        self.busy_from_ns = 0

    def begin(self, now_ns: int) -> None:
        for from_ns, to_ns in self.pauses:
            self.simulation.at(from_ns, self._pause)
            self.simulation.at(to_ns, self._resume)
        self.request(now_ns)

    def opened(self, now_ns: int) -> None:
        if self.pausing:
            number, self.number = self.number, 0
            self.release(now_ns, number, follows=False)
        else:
            # It may have been let in while the one before still runs what it has queued.
            self.busy_from_ns = max(now_ns, self.simulation.busy_until_ns)

    def closed(self, now_ns: int, number: int) -> None:
        self._drain(now_ns, number, follows=True)

    def _drain(self, now_ns: int, number: int, follows: bool) -> None:
        queue_ns = self.simulation.settings.queue_cap_ns if self.contended else LONE_QUEUE_NS
        end_ns = self.busy_from_ns
        # A launch passes as long as no more than the cap is queued.
        if isinstance(self.kernel, int):
            end_ns += ((now_ns + queue_ns - end_ns) // self.kernel + 1) * self.kernel
        else:
            while end_ns <= now_ns + queue_ns:
                end_ns += self.kernel(self.random)
        begin_ns = self.busy_from_ns
        self.simulation.busy_until_ns = end_ns
        if self.foretells:
            self.simulation.at(now_ns + MESSAGE_NS, lambda at_ns: self._foretold(at_ns, number, end_ns))
        self.simulation.at(end_ns, lambda at_ns: self._drained(begin_ns, at_ns, number, follows))

    def _foretold(self, now_ns: int, number: int, end_ns: int) -> None:
        arbiter = self.simulation.arbiter
        commands = arbiter.draining(self.allocation_id, self.client_id, number, end_ns, now_ns)
        self.simulation.perform(commands, now_ns)

    def _drained(self, begin_ns: int, now_ns: int, number: int, follows: bool) -> None:
        self.executed(begin_ns, now_ns)
        self.release(now_ns, number, follows and not self.pausing)

    def _pause(self, now_ns: int) -> None:
        self.pausing = True
        if self.number:
            number, self.number = self.number, 0
            self._drain(now_ns, number, follows=False)

    def _resume(self, now_ns: int) -> None:
        self.pausing = False
        self.request(now_ns)


class Loop(Program):
    """Launches, waits for the result, thinks, and launches again."""

    def __init__(
        self,
        simulation: "Simulation",
        allocation_id: str,
        client_id: int,
        *,
        kernel: Times,
        think: Times,
        idle_ns: int = 0,
    ) -> None:
        super().__init__(simulation, allocation_id, client_id)
        self.kernel = kernel
        self.think = think
        self.idle_ns = idle_ns  # how long it keeps its gate while it thinks
        self.running = False
        self.owed = 0  # the grant to release when the kernel is done
        self.thinking = 0  # counts its thoughts

    def begin(self, now_ns: int) -> None:
        self.request(now_ns)

    def opened(self, now_ns: int) -> None:
        self._launch(now_ns)

    def closed(self, now_ns: int, number: int) -> None:
        if self.running:
            self.owed = number
        else:
            self.release(now_ns, number, follows=False)

    def _launch(self, now_ns: int) -> None:
        self.running = True
        self.simulation.at(now_ns + self.kernel(self.random), lambda at_ns: self._done(now_ns, at_ns))

    def _done(self, begin_ns: int, now_ns: int) -> None:
        self.executed(begin_ns, now_ns)
        self.running = False
        self.thinking += 1
        thought = self.thinking
        think_ns = self.think(self.random)
        if self.owed:
            self.release(now_ns, self.owed, follows=False)
            self.owed = 0
        elif think_ns > self.idle_ns:
            self.simulation.at(now_ns + self.idle_ns, lambda at_ns: self._idle(at_ns, thought))
        self.simulation.at(now_ns + think_ns, self._thought)

    def _idle(self, now_ns: int, thought: int) -> None:
        if self.number and not self.running and thought == self.thinking:
            number, self.number = self.number, 0
            self.release(now_ns, number, follows=False)

    def _thought(self, now_ns: int) -> None:
        if self.number:
            self._launch(now_ns)
        else:
            self.request(now_ns)


class Bursts(Program):
    """Every period some kernels at once, submitted without waiting for one another."""

    def __init__(
        self,
        simulation: "Simulation",
        allocation_id: str,
        client_id: int,
        *,
        kernel_ns: int,
        kernels: int,
        period_ns: int,
    ) -> None:
        super().__init__(simulation, allocation_id, client_id)
        self.kernel_ns = kernel_ns
        self.kernels = kernels
        self.period_ns = period_ns
        self.came_ns: list[int] = []  # of each burst that is not done
        self.left = 0  # kernels of the first of these
        self.answers_ns: list[int] = []  # how long each burst took
        self.running = False
        self.owed = 0

    def begin(self, now_ns: int) -> None:
        self.came_ns.append(now_ns)
        self.simulation.at(now_ns + self.period_ns, self.begin)
        if len(self.came_ns) == 1:
            self.left = self.kernels
            if not self.number:
                self.request(now_ns)
            elif not self.running:
                self._launch(now_ns)

    def opened(self, now_ns: int) -> None:
        if not self.running:
            self._launch(now_ns)

    def closed(self, now_ns: int, number: int) -> None:
        if self.running:
            self.owed = number
        else:
            self.release(now_ns, number, follows=False)

    def _launch(self, now_ns: int) -> None:
        self.running = True
        self.simulation.at(now_ns + self.kernel_ns, lambda at_ns: self._done(now_ns, at_ns))

    def _done(self, begin_ns: int, now_ns: int) -> None:
        self.executed(begin_ns, now_ns)
        self.running = False
        self.left -= 1
        if not self.left:
            self.answers_ns.append(now_ns - self.came_ns.pop(0))
            if self.came_ns:
                self.left = self.kernels
        if self.owed:
            self.release(now_ns, self.owed, follows=bool(self.left))
            self.owed = 0
        elif self.left:
            self._launch(now_ns)
        else:
            number, self.number = self.number, 0
            self.release(now_ns, number, follows=False)
