"""Runs the engines on one card, from one event to the next."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf
from typing import Protocol

from edgeshare.contract.errors import InvalidRequest
from sharemgr.replay.engines import Engine
from sharemgr.replay.world import (
    BACK_OFF_S,
    CONTEXT_PART,
    GRACE_S,
    LOAD_IN_RAMP_S,
    POWER_W,
    TAKEN_MAX,
    UTILISATION_PERCENT,
    Phase,
    Pod,
    World,
)

LOOP_S = 0.5
"""How often the queue is looked at."""
MOMENT_S = 1e-6
"""Times closer than this are one."""


class Admission(Protocol):
    """Who lets pods onto the card."""

    after_bind_s: float
    """It rests for so long after each."""

    def pick(self, queue: Sequence[Pod], now_s: float) -> Pod | None:
        """The one of those waiting that comes now."""

    def until_s(self) -> float:
        """Until when the last answer holds if nothing happens."""

    def bound(self, pod: Pod, now_s: float) -> None:
        """A pod is on the card."""

    def left(self, pod: Pod, now_s: float) -> None:
        """A pod is on the card no more: it ended, or was taken back."""

    def sampled(self, taken_at_s: float, used_mib: float, by_pod: Sequence[tuple[Pod, float]], now_s: float) -> None:
        """What was in use when samples were taken."""


@dataclass(slots=True)
class Outcome:
    """What came of one run. Means over time are until the last pod ended."""

    pods: list[Pod]
    makespan_s: float
    memory_mib: float
    utilisation_percent: float
    power_w: float
    failed_guarantees: int


class Simulation:
    """One run. Raises InvalidRequest where an engine could never end."""

    def __init__(self, world: World, engines: Sequence[Engine], admission: Admission) -> None:
        for engine in engines:
            most_mib = min(engine.limit_mib, world.usable_mib)
            if not 0 < engine.need_mib <= most_mib or not 0 <= engine.guarantee_mib <= most_mib:
                raise InvalidRequest(
                    f"engine {engine.number} ({engine.key}) needs {engine.need_mib} MiB, is guaranteed "
                    f"{engine.guarantee_mib}, and can have {most_mib}: at least what it needs, and what is guaranteed"
                )
        self._world = world
        self._admission = admission
        self._coming = [Pod(engine, engine.guarantee_mib) for engine in reversed(engines)]
        self.pods = self._coming[::-1]
        self._queue: list[Pod] = []
        self._bound: list[Pod] = []
        """To the card, those that crashed too."""
        self._now_s = 0.0
        self._look_s = 0.0
        """When the queue is looked at next, if there is one."""
        self._rests_s = 0.0
        """Until when no pod is let in after the last one."""
        self._sample_s = 0.0
        self._samples: list[tuple[float, float, list[tuple[Pod, float]]]] = []
        """Taken and not told yet."""
        self._memory = self._utilisation = self._power = 0.0
        """Integrals over time."""
        self._failed_guarantees = 0

    def run(self) -> Outcome:
        """From an empty card until all have ended."""
        while self._coming or self._queue or self._bound:
            working = [pod for pod in self._bound if pod.phase is Phase.WORKING]
            rate = self._rate(len(working))
            self._advance(self._next_s(rate), working, rate)
            if self._is_due():
                self._go_on()
            self._arrive()
            self._sample()
            if self._queue and self._now_s >= self._look_s - MOMENT_S:
                self._bind()
        end_s = self._now_s
        memory_mib, utilisation, power_w = (each / end_s for each in (self._memory, self._utilisation, self._power))
        return Outcome(self.pods, end_s, memory_mib, utilisation, power_w, self._failed_guarantees)

    def _next_s(self, rate: float) -> float:
        times = [self._sample_s]
        for pod in self._bound:
            times += (pod.leaves_at_s, self._over_s(pod, rate))
        if self._coming:
            times.append(self._coming[-1].engine.arrives_at_s)
        if self._queue:
            times.append(self._look_s)
        if self._samples:
            times.append(self._samples[0][0] + self._world.sample_age_s)
        return max(self._now_s, min(times))

    def _over_s(self, pod: Pod, rate: float) -> float:
        """When its phase is over if nothing changes, or what it holds grows from then on at another pace."""
        if pod.phase is Phase.WORKING:
            return self._now_s + max(0.0, pod.left_s - pod.peak_left_s(self._world)) / rate
        if pod.phase is Phase.RAMPING:
            past_s = self._now_s + MOMENT_S
            if pod.started_at_s > past_s:
                return pod.started_at_s
            bends_s = pod.started_at_s + CONTEXT_PART * self._world.ramp_s
            return bends_s if bends_s > past_s else pod.next_s
        return pod.next_s

    def _rate(self, working: int) -> float:
        return 1 / (1 + self._world.slow_down * max(0, working - 1))

    def _each_mib(self) -> list[float]:
        """What each of those bound holds, in their order: only of those in their ramp it depends on the time."""
        world, now_s = self._world, self._now_s
        return [pod.used_mib(world, now_s) if pod.phase is Phase.RAMPING else pod.held_mib for pod in self._bound]

    def _used_mib(self) -> float:
        return sum(self._each_mib())

    def _advance(self, to_s: float, working: Sequence[Pod], rate: float) -> None:
        before_mib, passed_s = self._used_mib(), to_s - self._now_s
        self._utilisation += passed_s * UTILISATION_PERCENT[min(len(working), len(UTILISATION_PERCENT) - 1)]
        self._power += passed_s * POWER_W[min(len(working), len(POWER_W) - 1)]
        for pod in working:
            pod.left_s -= passed_s * rate
        self._now_s = to_s
        ramps = any(pod.phase is Phase.RAMPING for pod in self._bound)
        after_mib = self._used_mib() if ramps else before_mib
        both_mib = min(before_mib, self._world.usable_mib) + min(after_mib, self._world.usable_mib)
        self._memory += passed_s * both_mib / 2

    def _is_due(self) -> bool:
        """Whether anything is, on the card: at most events nothing is."""
        due_s = self._now_s + MOMENT_S
        for pod in self._bound:
            done = pod.phase is Phase.WORKING and pod.left_s <= pod.peak_left_s(self._world) + MOMENT_S
            if done or pod.leaves_at_s <= due_s or pod.next_s <= due_s:
                return True
        return False

    def _go_on(self) -> None:
        """All that is due on the card: those that leave make room for those that claim."""
        for pod in [each for each in self._bound if each.leaves_at_s <= self._now_s + MOMENT_S]:
            self._take(pod)
        working = [pod for pod in self._bound if pod.phase is Phase.WORKING]
        for pod in working:
            if pod.left_s <= MOMENT_S:
                self._leave(pod, Phase.ENDED)
        for pod in working:
            if pod.phase is Phase.WORKING and pod.left_s <= pod.peak_left_s(self._world) + MOMENT_S:
                pod.need_mib = pod.full_mib(self._world)
                self._claim(pod)
        for pod in [each for each in self._bound if each.next_s <= self._now_s + MOMENT_S]:
            if pod.phase in (Phase.RAMPING, Phase.CLAIMING):
                self._claim(pod)
            elif pod.phase is Phase.LOADING:
                pod.phase, pod.next_s = Phase.WORKING, inf
            elif pod.phase is Phase.CRASHED:
                self._start(pod, self._now_s)

    def _start(self, pod: Pod, at_s: float) -> None:
        pod.phase = Phase.RAMPING
        pod.started_at_s = at_s
        pod.next_s = at_s + self._world.ramp_s
        pod.need_mib, pod.left_s = pod.engine.need_mib, pod.engine.work_s

    def _claim(self, pod: Pod) -> None:
        """The pod wants all that it needs now."""
        others_mib = self._used_mib() - pod.used_mib(self._world, self._now_s)
        have_mib = min(pod.need_mib, max(0, round(self._world.usable_mib - others_mib)))
        assured_mib = min(pod.need_mib, pod.guarantee_mib)
        if have_mib < assured_mib and pod.leaves_at_s == inf:
            victims = self._victims(pod, assured_mib - have_mib)
            for victim in victims:
                victim.leaves_at_s = min(victim.leaves_at_s, self._now_s + GRACE_S)
            if victims:
                pod.held_mib = have_mib
                pod.phase, pod.next_s = Phase.CLAIMING, self._now_s + GRACE_S
                return
            self._failed_guarantees += pod.phase is not Phase.CLAIMING
        if have_mib < pod.need_mib and self._was_overtaken(pod):
            self._take(pod)
            return
        if have_mib < self._world.free_needed * pod.need_mib:
            self._crash(pod)
            return
        pod.was_short |= have_mib < pod.need_mib
        pod.held_mib, pod.held_since_s = have_mib, self._now_s
        if pod.left_s < pod.engine.work_s:
            pod.phase, pod.next_s = Phase.WORKING, inf
        else:
            pod.phase = Phase.LOADING
            pod.next_s = self._now_s + max(0.0, pod.engine.load_s - LOAD_IN_RAMP_S)

    def _was_overtaken(self, pod: Pod) -> bool:
        """Whether one came after it that borrows nothing: it may be that one who has what this was promised."""
        return any(each.bound_at_s > pod.bound_at_s and not each.borrows for each in self._bound)

    def _victims(self, claimant: Pod, missing_mib: float) -> list[Pod]:
        """Whose memory is taken back: of the borrowers one that suffices and has done the least, else as many as it
        takes, those first that have done the least."""
        held_mib = {pod: pod.used_mib(self._world, self._now_s) for pod in self._bound if pod is not claimant}
        borrowers = [pod for pod, mib in held_mib.items() if mib > pod.guarantee_mib]
        borrowers.sort(key=lambda pod: (pod.leaves_at_s, pod.engine.work_s - pod.left_s))
        alone = next((pod for pod in borrowers if held_mib[pod] >= missing_mib), None)
        if alone is not None:
            return [alone]
        victims: list[Pod] = []
        for pod in borrowers:
            if sum(held_mib[each] for each in victims) < missing_mib:
                victims.append(pod)
        return victims

    def _crash(self, pod: Pod) -> None:
        pod.lost_s += pod.engine.work_s - pod.left_s
        pod.phase, pod.held_mib = Phase.CRASHED, 0.0
        pod.next_s = self._now_s + BACK_OFF_S * 2**pod.restarts
        pod.restarts += 1
        self._changed()

    def _take(self, pod: Pod) -> None:
        """Takes a pod's memory back; it comes again, and after twice only as guaranteed at its limit."""
        pod.taken += 1
        pod.lost_s += pod.engine.work_s - pod.left_s
        self._leave(pod, Phase.QUEUED)
        if pod.taken >= TAKEN_MAX:
            pod.guarantee_mib = pod.engine.limit_mib
        pod.queued_at_s = self._now_s
        self._queue.append(pod)

    def _leave(self, pod: Pod, phase: Phase) -> None:
        pod.phase, pod.next_s, pod.leaves_at_s = phase, inf, inf
        self._bound.remove(pod)
        self._admission.left(pod, self._now_s)
        pod.held_mib, pod.ended_at_s = 0.0, self._now_s
        self._changed()

    def _arrive(self) -> None:
        while self._coming and self._coming[-1].engine.arrives_at_s <= self._now_s + MOMENT_S:
            pod = self._coming.pop()
            pod.queued_at_s = pod.engine.arrives_at_s
            self._queue.append(pod)
            self._changed()

    def _sample(self) -> None:
        if self._now_s >= self._sample_s - MOMENT_S:
            each_mib = self._each_mib()
            used_mib = min(sum(each_mib), self._world.usable_mib)
            self._samples.append((self._now_s, used_mib, list(zip(self._bound, each_mib, strict=True))))
            self._sample_s += self._world.scrape_s
        while self._samples and self._samples[0][0] + self._world.sample_age_s <= self._now_s + MOMENT_S:
            taken_at_s, used_mib, by_pod = self._samples.pop(0)
            self._admission.sampled(taken_at_s, used_mib, by_pod, self._now_s)
            self._changed()

    def _changed(self) -> None:
        """The queue is looked at the next time that it is looked at."""
        self._look_s = min(self._look_s, _on_loop(max(self._now_s, self._rests_s)))

    def _bind(self) -> None:
        pod = self._admission.pick(self._queue, self._now_s)
        if pod is None:
            self._look_s = max(_on_loop(self._admission.until_s()), _on_loop(self._now_s + LOOP_S))
            return
        self._queue.remove(pod)
        pod.pending_s += self._now_s - pod.queued_at_s
        pod.bound_at_s = self._now_s
        self._bound.append(pod)
        self._start(pod, self._now_s + self._world.start_s)
        self._admission.bound(pod, self._now_s)
        self._rests_s = self._now_s + self._admission.after_bind_s
        self._look_s = _on_loop(max(self._rests_s, self._now_s + LOOP_S if self._admission.after_bind_s else 0))


def _on_loop(at_s: float) -> float:
    return inf if at_s == inf else ceil((at_s - MOMENT_S) / LOOP_S) * LOOP_S
