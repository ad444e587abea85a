"""The published experiment: what the world does with pods, and that no policy sees more of it than it may."""

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from edgeshare.contract.errors import InvalidRequest
from sharemgr.cluster.lending import POLICIES
from sharemgr.cluster.state.profiles import Profiles
from sharemgr.replay.admissions import Admission, alibaba, kubernetes, oracle, unlimited
from sharemgr.replay.engines import ARRIVALS_S, CARD_MIB, PERCENTS, QUERIES, Engine, draw
from sharemgr.replay.experiment import RULES, Job, jobs, measure
from sharemgr.replay.lent import MODEL, Lending
from sharemgr.replay.simulation import Outcome, Simulation
from sharemgr.replay.world import HARD, Phase, Pod, World

SETTINGS = tuple(ARRIVALS_S)


def engine(number: int = 0, **others: Any) -> Engine:
    plain = Engine(number, "a", 0.0, 14.0, 100.0, 7000, 1300, 7000, 7)
    return replace(plain, **others)


def let_in(engines: Sequence[Engine], world: World | None = None) -> Outcome:
    """All come at once, 5 s apart."""
    return Simulation(world or World(), engines, unlimited(CARD_MIB)).run()


def times_s(outcome: Outcome) -> list[float]:
    return [pod.ended_at_s - pod.engine.arrives_at_s for pod in outcome.pods]


def test_25_engines_come_at_their_pace_and_declare_too_much() -> None:
    assert sum(count for of in QUERIES.values() for _, count in of) == 25
    for setting, (low, high) in ARRIVALS_S.items():
        engines = draw(setting, 150, 0, seed=3)
        gaps = [later.arrives_at_s - earlier.arrives_at_s for earlier, later in pairwise(engines)]
        assert len(engines) == 25
        if high:
            assert all(low <= gap <= high for gap in gaps)
        else:
            assert engines[-1].arrives_at_s <= 1
        assert all(each.limit_mib == min(CARD_MIB, each.need_mib * 5 // 2) for each in engines)
        assert draw(setting, 150, 0, seed=3) == engines
        assert [each.key for each in draw(setting, 0, 25, seed=3)] == [each.key for each in engines]
        assert draw(setting, 150, 0, seed=4) != engines


def test_a_part_of_the_pods_is_guaranteed_all_that_it_declares() -> None:
    for percent, count in ((0, 0), (25, 6), (50, 12)):
        guaranteed = [each for each in draw("15-30", 250, percent, 1) if each.guarantee_mib == each.limit_mib]
        assert len(guaranteed) == count


def test_a_pod_alone_takes_its_ramp_its_load_and_its_work() -> None:
    outcome = let_in([engine()])
    assert times_s(outcome) == [pytest.approx(4 + 18 + 2 + 100)]
    assert outcome.makespan_s == pytest.approx(124)


def test_pods_that_work_beside_each_other_slow_down() -> None:
    one, other = times_s(let_in([engine(), engine(1, work_s=50.0)]))
    assert other == pytest.approx(5 + 24 + 5 / 1 * 0 + 50 * 1.06, abs=0.5)
    assert one == pytest.approx(24 + 5 + 50 * 1.06 + (100 - 5 - 50), abs=0.5)


def test_a_pod_that_finds_less_than_45_percent_of_its_memory_crashes_and_one_that_finds_more_is_short() -> None:
    three = [engine(number, need_mib=14_000, guarantee_mib=0, limit_mib=14_000) for number in range(3)]
    outcome = let_in(three, World())
    assert [pod.restarts for pod in outcome.pods] == [0, 0, 3], "4,510 of 14,000 were free"
    two = [engine(number, need_mib=20_000, guarantee_mib=0, limit_mib=20_000) for number in range(2)]
    assert [(pod.restarts, pod.was_short) for pod in let_in(two).pods] == [(0, False), (0, True)]
    hard = let_in(two, World(free_needed=HARD))
    assert [bool(pod.restarts) for pod in hard.pods] == [False, True]
    assert not any(pod.was_short for pod in hard.pods)


def test_what_is_guaranteed_is_taken_back_after_a_grace_from_who_loses_the_least() -> None:
    borrowers = [
        engine(number, need_mib=10_000, limit_mib=10_000, work_s=work_s) for number, work_s in enumerate((120, 300))
    ]
    claimant = engine(2, arrives_at_s=60.0, need_mib=20_000, guarantee_mib=20_000, limit_mib=20_000)
    outcome = let_in([*borrowers, claimant], World(free_needed=HARD))
    first, second, third = outcome.pods
    assert (first.taken, second.taken, third.taken) == (0, 1, 0), "it was bound 5 s later: it has done less"
    assert third.restarts == first.restarts == outcome.failed_guarantees == 0
    assert second.lost_s == pytest.approx(58 / 1.06, abs=3)
    assert third.held_since_s == pytest.approx(60 + 4 + 18 + 5, abs=0.5)


def test_a_pod_that_was_taken_back_twice_comes_again_only_as_guaranteed_at_its_limit() -> None:
    pod = Pod(engine(limit_mib=9000), 1300)
    simulation = Simulation(World(), [], unlimited(CARD_MIB))
    for times, guarantee_mib in ((1, 1300), (2, 9000)):
        simulation._bound.append(pod)
        simulation._admission.bound(pod, 0.0)
        simulation._take(pod)
        assert (pod.taken, pod.guarantee_mib) == (times, guarantee_mib)
    assert not pod.borrows


def test_a_late_peak_comes_when_most_of_the_work_is_done_within_the_limit() -> None:
    for limit_mib, peak_mib in ((7000, 7000), (9000, 9000), (20_000, 10_500)):
        outcome = let_in([engine(limit_mib=limit_mib)], World(late_peak=1.5))
        assert outcome.pods[0].need_mib == peak_mib
        expected_s = 24 + 80 if peak_mib > 7000 else 22
        assert outcome.pods[0].held_since_s == pytest.approx(expected_s, abs=0.5)


def test_means_over_time_are_those_of_the_ramp_and_the_table() -> None:
    outcome = let_in([engine()])
    ramp_mib_s = 320 * 10 / 2 + (320 + 7000) * 8 / 2
    assert outcome.memory_mib == pytest.approx((ramp_mib_s + 7000 * 102) / 124)
    assert outcome.utilisation_percent == pytest.approx((24 * 1.6 + 100 * 4.2) / 124)
    assert outcome.power_w == pytest.approx((24 * 30.1 + 100 * 40.4) / 124)


@pytest.mark.parametrize(
    "wrong",
    [{"need_mib": 7001}, {"need_mib": 0}, {"guarantee_mib": 7001}, {"limit_mib": 50_000, "need_mib": CARD_MIB + 1}],
)
def test_an_engine_that_could_never_end_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidRequest, match=r"engine 3 \(a\) needs"):
        Simulation(World(), [engine(3, **wrong)], unlimited(CARD_MIB))


@pytest.mark.parametrize("admission", [kubernetes, alibaba, oracle])
def test_who_is_compared_with_never_over_commits(admission: type[Admission]) -> None:
    for seed in (1, 2):
        outcome = Simulation(World(free_needed=HARD), draw("burst", 100, 0, seed), admission(CARD_MIB)).run()
        assert all(pod.phase is Phase.ENDED and not pod.restarts and not pod.taken for pod in outcome.pods)


class Watched(Lending):
    """Which pods were let in, when, and with which promise."""

    def __init__(self, policy: str, profiles: Profiles) -> None:
        super().__init__(POLICIES[policy], World(), profiles)
        self.answers: list[tuple[int | None, int | None, float]] = []

    def pick(self, queue: Sequence[Pod], now_s: float) -> Pod | None:
        pod = super().pick(queue, now_s)
        self.answers.append((pod and pod.engine.number, self._promised_mib if pod else None, now_s))
        return pod


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", range(5))
def test_worlds_with_equal_samples_and_different_needs_get_equal_decisions(policy: str, seed: int) -> None:
    rng = random.Random(seed)
    lies = random.Random(-seed)
    engines = draw("10-20", 150, 0, seed)
    others = [
        replace(each, need_mib=lies.randint(1, 30_000), work_s=lies.random(), load_s=0.0, declared_gib=1)
        for each in engines
    ]
    answers = []
    for of_world in (engines, others):
        rng.seed(seed)
        watched = Watched(policy, Profiles())
        waiting = [Pod(each, each.guarantee_mib) for each in of_world]
        there: list[Pod] = []
        for step in range(200):
            now_s = step * 3.5
            if waiting and step % 2 and (pod := watched.pick(waiting[:6], now_s)):
                waiting.remove(pod)
                there.append(pod)
                watched.bound(pod, now_s)
            if there and rng.random() < 0.1:
                pod = there.pop(rng.randrange(len(there)))
                pod.phase, pod.held_mib, pod.held_since_s = Phase.ENDED, 900.0, now_s
                watched.left(pod, now_s)
            by_pod = [(pod, rng.choice((300.0, 900.0, 900.0))) for pod in there]
            watched.sampled(now_s, sum(mib for _, mib in by_pod), by_pod, now_s)
        answers.append(watched.answers)
    assert answers[0] == answers[1]
    assert sum(number is not None for number, _, _ in answers[0]) > 5


def test_all_is_run_once() -> None:
    work = list(jobs(tuple(POLICIES), (1, 2), World()))
    assert len(set(work)) == len(work) == len(SETTINGS) * len(RULES) * 2 * (4 + 3 * 5 + 1)
    (found,) = (job.run() for job in work if job == Job("burst", "45 %", 0, "oracle", "", 2, World()))
    assert [each.percent for each in found] == list(PERCENTS)


def test_percentiles_are_interpolated() -> None:
    outcome = let_in([engine(), engine(1, work_s=50.0)])
    sooner_s, later_s = sorted(times_s(outcome))
    assert measure(outcome).p99_s == pytest.approx(sooner_s + 0.99 * (later_s - sooner_s))
    assert sooner_s < later_s
    assert measure(let_in([engine()])).p99_s == pytest.approx(124)


def test_what_a_run_took_is_learned_when_it_is_over() -> None:
    profiles = Profiles()
    Simulation(World(), [engine(limit_mib=20_000)], Lending(POLICIES["safe"], World(), profiles)).run()
    profile = profiles.on(MODEL)["a"]
    assert profile.peak_mib == 7000
    assert profile.time_to_peak_s == pytest.approx(22)
    assert profile.use_mib[-1] == 7000


def test_what_a_run_took_that_was_refused_memory_is_not() -> None:
    profiles = Profiles()
    two = [
        engine(number, key=key, need_mib=20_000, guarantee_mib=0, limit_mib=25_000) for number, key in enumerate("ab")
    ]

    class Heedless(Lending):
        def pick(self, queue: Sequence[Pod], now_s: float) -> Pod | None:
            self._promised_mib = queue[0].engine.limit_mib
            return queue[0]

    outcome = Simulation(World(), two, Heedless(POLICIES["safe"], World(), profiles)).run()
    assert [pod.was_short for pod in outcome.pods] == [False, True]
    assert [profiles.on(MODEL)[key].peak_mib for key in "ab"] == [20_000, None]


def test_pods_of_one_program_are_each_let_in_by_what_they_ask() -> None:
    lending = Lending(POLICIES["res-ag"], World(), Profiles())
    too_large, fits = (Pod(engine(limit_mib=limit_mib), 1300) for limit_mib in (CARD_MIB + 1, 7000))
    lending.sampled(0.0, 0.0, [], 0.0)
    assert lending.pick([too_large, fits], 0.0) is fits
    assert lending.pick([too_large, too_large], 0.0) is None
