"""The published experiment: every way to admit pods, at every arrival setting, over all over-provisionings and
seeds."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import NamedTuple

import numpy as np

from sharemgr.cluster.lending import POLICIES
from sharemgr.cluster.state.profiles import Profiles
from sharemgr.replay.admissions import Order, alibaba, first_come, kubernetes, largest_first, oracle, unlimited
from sharemgr.replay.engines import ARRIVALS_S, CARD_MIB, PERCENTS, draw
from sharemgr.replay.lent import MODEL, Lending
from sharemgr.replay.simulation import Admission, Outcome, Simulation
from sharemgr.replay.world import HARD, World

BASELINES: dict[str, Callable[[int], Admission]] = {
    "kubernetes": kubernetes,
    "alibaba": alibaba,
    "oracle": oracle,
    "unlimited": unlimited,
}
WITHOUT_END_MIB = 1_000_000
"""Of the unlimited card: more than all pods ask for together."""
LEARNING = frozenset({"safe", "cbp-knots"})
"""Policies that go by profiles: they run twice, the second time with what the first learned."""
ORDERS: dict[str, Order] = {"largest first": largest_first, "first come": first_come}
RULES: dict[str, float] = {"45 %": World().free_needed, "hard": HARD}
"""When a pod crashes: the published rule, and with less than all that it needs."""
GUARANTEED_PERCENTS = (0, 25, 50)

FAULTS: dict[str, World] = {
    "none": World(),
    "slow-down-0.3": World(slow_down=0.3),
    "slow-down-1": World(slow_down=1.0),
    "ramp-2": World(ramp_s=2.0),
    "ramp-120": World(ramp_s=120.0),
    "late-peak": World(late_peak=1.5),
    "late-samples": World(sample_age_s=30.0),
    "low-profiles": World(profile_factor=0.8),
    "high-profiles": World(profile_factor=1.2),
}
"""Worlds that differ from the experiment's in one thing."""


class Row(NamedTuple):
    """One way to admit pods, at one setting."""

    setting: str
    rule: str
    guaranteed_percent: int
    policy: str
    """Its name; of a run without one, the baseline's."""
    profiles: str
    """Before: "none", or of "one pass"."""
    order: str


class Measures(NamedTuple):
    """What is measured of one run, or means of several."""

    p99_s: float
    """Of the pods' times from arrival to end, as are the mean and what follows."""
    mean_s: float
    pending_s: float
    memory_percent: float
    """Of the card of the experiment, until the last has ended; as utilisation and power."""
    utilisation_percent: float
    power_w: float
    energy_kj: float
    makespan_s: float
    restarts: float
    evictions: float
    evictions_most: float
    """Of one pod."""
    short_pods: float
    """Pods that went on with less memory than they needed."""
    lost_s: float
    """Work that was done in vain."""
    failed_guarantees: float


class Measured(NamedTuple):
    """One run."""

    row: Row
    percent: int
    seed: int
    measures: Measures


@dataclass(frozen=True, slots=True)
class Job:
    """What is run in one go: all percents of one seed, and where profiles are learned both passes."""

    setting: str
    rule: str
    guaranteed_percent: int
    policy: str
    order: str
    seed: int
    world: World

    def run(self) -> list[Measured]:
        """A run for each percent, or two."""
        world = replace(self.world, free_needed=RULES[self.rule])
        found = []
        for percent in PERCENTS:
            engines = draw(self.setting, percent, self.guaranteed_percent, self.seed)
            if self.policy in BASELINES:
                limited = replace(world, usable_mib=WITHOUT_END_MIB) if self.policy == "unlimited" else world
                outcome = Simulation(limited, engines, BASELINES[self.policy](limited.usable_mib)).run()
                found.append(Measured(self._row("none"), percent, self.seed, measure(outcome)))
                continue
            profiles = Profiles()
            for known in ("none", "one pass") if self.policy in LEARNING else ("none",):
                lending = Lending(POLICIES[self.policy], world, profiles, ORDERS[self.order])
                outcome = Simulation(world, engines, lending).run()
                found.append(Measured(self._row(known), percent, self.seed, measure(outcome)))
                profiles = scaled(profiles, world.profile_factor)
        return found

    def _row(self, profiles: str) -> Row:
        return Row(self.setting, self.rule, self.guaranteed_percent, self.policy, profiles, self.order)


def jobs(policies: Sequence[str], seeds: Sequence[int], world: World) -> Iterator[Job]:
    """All of the experiment: what differs by guaranteed pods is run with each part of them, what takes pods in the
    order
    of kube-scheduler in any case is not run in the other."""
    for setting in ARRIVALS_S:
        for rule in RULES:
            for seed in seeds:
                for baseline in BASELINES:
                    yield Job(setting, rule, 0, baseline, "", seed, world)
                for guaranteed_percent in GUARANTEED_PERCENTS:
                    for policy in policies:
                        for order in ORDERS if policy == "safe" and not guaranteed_percent else ("largest first",):
                            yield Job(setting, rule, guaranteed_percent, policy, order, seed, world)


def scaled(profiles: Profiles, factor: float) -> Profiles:
    """The profiles with every peak wrong by a factor."""
    if factor == 1:
        return profiles
    wrong = Profiles()
    for key, profile in profiles.on(MODEL).items():
        for run in profile.runs:
            peak_mib = round(run.peak_mib * factor)
            use_mib = tuple(round(mib * factor) for mib in run.use_mib)
            limit_mib = round(run.limit_mib * max(1.0, factor) + 1)
            wrong.learn(
                MODEL, key, replace(run, peak_mib=peak_mib, use_mib=use_mib, limit_mib=limit_mib), run.ended_at_s
            )
    return wrong


def measure(outcome: Outcome) -> Measures:
    """What is reported of a run."""
    times_s = [pod.ended_at_s - pod.engine.arrives_at_s for pod in outcome.pods]
    return Measures(
        p99_s=float(np.percentile(times_s, 99)),
        mean_s=fmean(times_s),
        pending_s=fmean(pod.pending_s for pod in outcome.pods),
        memory_percent=100 * outcome.memory_mib / CARD_MIB,
        utilisation_percent=outcome.utilisation_percent,
        power_w=outcome.power_w,
        energy_kj=outcome.power_w * outcome.makespan_s / 1000,
        makespan_s=outcome.makespan_s,
        restarts=sum(pod.restarts for pod in outcome.pods),
        evictions=sum(pod.taken for pod in outcome.pods),
        evictions_most=max(pod.taken for pod in outcome.pods),
        short_pods=sum(pod.was_short for pod in outcome.pods),
        lost_s=sum(pod.lost_s for pod in outcome.pods),
        failed_guarantees=outcome.failed_guarantees,
    )
