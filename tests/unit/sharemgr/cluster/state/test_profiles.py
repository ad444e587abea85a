"""Profiles: what runs teach, how that ages, and how little a lie does."""

import json
from dataclasses import replace
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeshare.contract.errors import InvalidRequest
from sharemgr.cluster.state.profiles import (
    PROFILES_MAX,
    RUN_AGE_MAX_S,
    RUNS_MAX,
    SERIES_MAX,
    Ending,
    Profile,
    Profiles,
    Run,
)

MODEL, KEY = "Tesla-T4", "label/train"
LIMIT_MIB = 10_000
RUN = Run(
    ended_at_s=1000.0,
    ending=Ending.COMPLETED,
    limit_mib=LIMIT_MIB,
    peak_mib=4000,
    time_to_peak_s=22.0,
    flat_s=60.0,
    use_mib=(0, 300, 4000),
    gpu_percent=50.0,
    kernel_p50_us=20.0,
    kernel_longest_us=900.0,
    think_us=500.0,
)


def learned(*runs: Run, now_s: float = 2000.0) -> Profile:
    profiles = Profiles()
    for run in runs:
        profiles.learn(MODEL, KEY, run, now_s)
    return profiles.on(MODEL)[KEY]


def test_a_run_that_is_over_says_what_its_program_takes() -> None:
    profile = learned(RUN)
    assert (profile.peak_mib, profile.time_to_peak_s, profile.use_mib) == (4000, 22.0, (0, 300, 4000))
    assert (profile.gpu_percent, profile.kernel_longest_us, profile.slow_down) == (50.0, 900.0, 1.0)


def test_memory_is_the_most_of_all_runs_and_what_others_suffer_by_is_the_worst() -> None:
    profile = learned(RUN, replace(RUN, peak_mib=5000, kernel_longest_us=100.0, gpu_percent=10.0, slow_down=2.0), RUN)
    assert profile.peak_mib == 5000
    assert (profile.kernel_longest_us, profile.slow_down) == (900.0, 2.0)
    assert profile.gpu_percent == 50.0


@pytest.mark.parametrize(
    "run",
    [
        replace(RUN, ending=Ending.FAILED),
        replace(RUN, ending=Ending.TAKEN_BACK),
        replace(RUN, flat_s=5.0),
        replace(RUN, limit_mib=4000),
        replace(RUN, limit_mib=4010),
    ],
    ids=["failed", "taken back", "ended in its ramp", "at its limit", "a page below its limit"],
)
def test_a_run_that_did_not_get_what_it_would_have_taken_says_nothing_of_memory(run: Run) -> None:
    profile = learned(run)
    assert (profile.peak_mib, profile.time_to_peak_s, profile.use_mib) == (None, 0.0, ())
    assert profile.kernel_longest_us == 900.0
    assert learned(replace(RUN, peak_mib=3000, use_mib=()), run).peak_mib == 3000


def test_runs_age_by_number() -> None:
    old = replace(RUN, peak_mib=9000, ended_at_s=10.0)
    newer = [replace(RUN, ended_at_s=100.0 + number) for number in range(RUNS_MAX)]
    assert learned(old, *newer[:-1]).peak_mib == 9000
    assert learned(old, *newer).peak_mib == 4000
    assert learned(*newer, old).peak_mib == 4000, "in whatever order they are told of"


def test_runs_age_by_time() -> None:
    old, now_s = replace(RUN, peak_mib=9000), 1000.0 + RUN_AGE_MAX_S
    assert learned(old, replace(RUN, ended_at_s=now_s), now_s=now_s).peak_mib == 9000
    assert learned(old, replace(RUN, ended_at_s=now_s), now_s=now_s + 1).peak_mib == 4000


def test_a_program_that_fails_again_and_again_loses_nothing_of_what_is_known_of_it() -> None:
    failures = [replace(RUN, ending=Ending.FAILED, peak_mib=10, use_mib=(), ended_at_s=1001.0 + n) for n in range(50)]
    profile = learned(RUN, *failures)
    assert profile.peak_mib == 4000
    assert len(profile.runs) == RUNS_MAX


BAD = {
    "peak_mib": (-1, nan, inf, LIMIT_MIB + 1, "1", True, None),
    "limit_mib": (nan, -1, "9"),
    "gpu_percent": (-0.1, 100.1, nan),
    "waited_percent": (101.0,),
    "kernel_longest_us": (-1.0, inf),
    "slow_down": (0.5, nan),
    "ended_at_s": (nan, 2061.0),
    "use_mib": ((1, -1), (4001,), (nan,), (1,) * (SERIES_MAX + 1)),
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, values in BAD.items() for value in values])
def test_a_run_that_cannot_be_is_refused_and_leaves_no_trace(field: str, value: object) -> None:
    profiles = Profiles()
    profiles.learn(MODEL, KEY, RUN, 2000.0)
    before = profiles.document()
    with pytest.raises(InvalidRequest, match=r"a run"):
        profiles.learn(MODEL, KEY, replace(RUN, **{field: value}), 2000.0)
    assert profiles.document() == before


@pytest.mark.parametrize(("model", "key"), [("", KEY), (MODEL, ""), (MODEL, "k" * 254)])
def test_a_name_that_cannot_be_is_refused(model: str, key: str) -> None:
    with pytest.raises(InvalidRequest, match="characters"):
        Profiles().learn(model, key, RUN, 2000.0)


RUNS = st.builds(
    Run,
    ended_at_s=st.floats(0, 2000),
    ending=st.sampled_from(Ending),
    limit_mib=st.just(LIMIT_MIB),
    peak_mib=st.integers(0, LIMIT_MIB),
    time_to_peak_s=st.floats(0, 500),
    flat_s=st.floats(0, 100),
    gpu_percent=st.floats(0, 100),
    kernel_longest_us=st.floats(0, 1e6),
)


@given(st.lists(RUNS, min_size=1, max_size=RUNS_MAX - 1), RUNS)
def test_one_run_more_never_lowers_what_a_program_may_take(runs: list[Run], lie: Run) -> None:
    before, after = learned(*runs), learned(*runs, lie)
    assert (after.peak_mib or 0) >= (before.peak_mib or 0)
    assert after.kernel_longest_us >= before.kernel_longest_us
    assert (after.peak_mib or 0) <= max((before.peak_mib or 0), lie.peak_mib), "nor raises it by more than it shows"


@given(st.lists(RUNS, min_size=RUNS_MAX, max_size=RUNS_MAX), st.lists(RUNS, max_size=5))
def test_a_lie_is_forgotten_after_as_many_runs_as_a_profile_speaks_of(runs: list[Run], lies: list[Run]) -> None:
    honest = [replace(run, ending=Ending.COMPLETED, flat_s=10.0, peak_mib=500) for run in runs]
    before = [replace(lie, ended_at_s=0.0) for lie in lies]
    later = [replace(run, ended_at_s=1.0 + number) for number, run in enumerate(honest)]
    assert learned(*before, *later).peak_mib == 500


@given(st.lists(st.tuples(st.sampled_from("abc"), RUNS), max_size=30))
def test_what_is_written_is_read_again(told: list[tuple[str, Run]]) -> None:
    profiles = Profiles()
    for key, run in told:
        profiles.learn(MODEL, key, run, 2000.0)
    again = Profiles.parse(json.loads(json.dumps(profiles.document())), 2000.0)
    assert again.on(MODEL) == profiles.on(MODEL)


ROW = {"model": MODEL, "key": KEY, "runs": [{"ended_at_s": 1.0, "ending": "completed", "limit_mib": 9, "peak_mib": 8}]}


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "an object with a version"),
        ({"version": 1}, "an object with a version"),
        ({"version": 2, "profiles": []}, "profiles of version 2: this edgeshare reads 1"),
        ({"profiles": []}, "profiles of version None"),
        ({"version": 1, "profiles": [ROW, 7]}, "row 1"),
        ({"version": 1, "profiles": [{**ROW, "runs": [{"peak_mib": 8}]}]}, "row 0"),
        ({"version": 1, "profiles": [{**ROW, "runs": [{**ROW["runs"][0], "peak_mib": 10}]}]}, "row 0: a run held 10"),
        ({"version": 1, "profiles": [{**ROW, "runs": [{**ROW["runs"][0], "ending": "well"}]}]}, "row 0: 'well'"),
        ({"version": 1, "profiles": [{**ROW, "runs": [{**ROW["runs"][0], "more": 1}]}]}, "row 0: .*more"),
        ({"version": 1, "profiles": [{**ROW, "runs": [{**ROW["runs"][0], "use_mib": 5}]}]}, "row 0"),
        ({"version": 1, "profiles": [{**ROW, "runs": [{**ROW["runs"][0], "ended_at_s": 9e9}]}]}, "a clock is wrong"),
    ],
)
def test_a_document_of_another_version_or_forged_is_refused(document: object, said: str) -> None:
    assert len(Profiles.parse({"version": 1, "profiles": [ROW]}, 2000.0)) == 1
    with pytest.raises(InvalidRequest, match=said):
        Profiles.parse(document, 2000.0)


def test_so_many_profiles_are_kept_and_those_learned_from_longest_ago_go() -> None:
    profiles = Profiles()
    for number in range(PROFILES_MAX + 2):
        profiles.learn(MODEL, f"key {number}", RUN, 2000.0)
        if number == PROFILES_MAX - 1:
            profiles.learn(MODEL, "key 0", RUN, 2000.0)
    assert len(profiles) == PROFILES_MAX == len(profiles.on(MODEL))
    assert "key 0" in profiles.on(MODEL)
    assert "key 1" not in profiles.on(MODEL)
    assert "key 2" not in profiles.on(MODEL)
