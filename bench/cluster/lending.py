"""How long it takes to decide what a pod that borrows memory would be promised on each GPU of a large cluster."""

import time
from functools import partial
from random import Random

from bench.measurement import Bench, Effort, Measurement
from bench.report import Row, Target
from sharemgr.cluster.lending.card import Asked, Card, Resident, Sample, Use
from sharemgr.cluster.lending.fleet import REFUSED, Fleet
from sharemgr.cluster.state.profiles import Ending, Profiles, Run

GPUS = 40_000
"""Of 5,000 nodes."""
PROGRAMS = 1000
PODS_EACH = 4
CARD_MIB = 32_510
MODEL = "Tesla-V100"
DECISION_MS = Target(5)
DECISIONS = 200
SAMPLE_S = 7.0


def measurements(effort: Effort) -> list[Measurement]:
    """One."""
    return [Measurement("a decision over many GPUs", partial(measure, effort.replay_runs))]


def measure(runs: int, bench: Bench) -> list[Row]:
    """By `safe`; between two decisions a pod comes to a GPU, one leaves, and samples of some come."""
    random = Random(1)
    profiles = known(random)
    cards = [card(number, random) for number in range(GPUS)]
    now_s = 100.0
    fleet = Fleet(cards, profiles.on(MODEL), now_s)
    taken_ms, promised = [], 0
    for _ in range(runs):
        spent_s = 0.0
        for _ in range(DECISIONS):
            now_s += 0.1
            number = random.randrange(GPUS)
            cards[number].residents[0] = resident(number, now_s, random)
            fleet.changed(number, now_s)
            asked = ask(random)
            begin_s = time.perf_counter()
            promises = fleet.promises(asked, now_s)
            spent_s += time.perf_counter() - begin_s
            promised += int((promises != REFUSED).sum())
        taken_ms.append(1000 * spent_s / DECISIONS)
    note = f"mean of {DECISIONS} decisions a run; a pod fits on {promised / runs / DECISIONS:.0f} of them, in the mean"
    settings = {"GPUs": GPUS, "profiles": PROGRAMS, "pods": GPUS * PODS_EACH}
    return [Row("to decide what a pod would be lent", "ms", taken_ms, settings, target=DECISION_MS, note=note)]


def known(random: Random) -> Profiles:
    """A profile of each program."""
    profiles = Profiles()
    for number in range(PROGRAMS):
        run = Run(1.0, Ending.COMPLETED, CARD_MIB, random.randint(500, 9000), 20.0, 60.0)
        profiles.learn(MODEL, f"program {number}", run, 1.0)
    return profiles


def ask(random: Random) -> Asked:
    """One in ten is of a program that nobody knows."""
    return Asked(1300, random.randint(4000, CARD_MIB), f"program {random.randrange(PROGRAMS * 10 // 9)}")


def resident(number: int, bound_at_s: float, random: Random) -> Resident:
    """A pod that has settled, where it has been there for long enough."""
    asked = ask(random)
    use = Use(f"GPU-{number}", bound_at_s, CARD_MIB)
    for samples in range(1, 4):
        at_s = bound_at_s + samples * SAMPLE_S
        use.see(Sample(at_s, min(asked.limit_mib, 2000.0), use.gpu_id), at_s)
    return Resident(asked, bound_at_s, asked.limit_mib, use)


def card(number: int, random: Random) -> Card:
    """A GPU with its pods."""
    use = Use(f"GPU-{number}", 0.0, CARD_MIB)
    use.see(Sample(90.0, 8000.0, use.gpu_id), 90.0)
    return Card(CARD_MIB, use, [resident(number, random.uniform(0, 70), random) for _ in range(PODS_EACH)])
