"""Random sequences of calls that get and give back memory, of stops and kills of programs and of the manager, beside a
model: the books say what there is, and in the end all is free again to the byte."""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tests.kit.hook.memory_world import EXACT, OF_CONTEXTS, World
from tests.kit.hook.stage import SUCCESS, Stage
from tests.kit.properties.examples import examples

STRETCH = 100
"""So many sequences are one test: what each of its machines keeps open is closed at its end."""

SOAK = 10_000
"""Sequences of `make soak`; of `make test` those of one stretch that it tries."""

WHO = st.integers(0, 1)
WHICH = st.integers(0, 20)
HALVES_MIB = st.integers(1, 8) | st.integers(100, 300)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("get"), WHO, st.sampled_from([*EXACT]), HALVES_MIB),
        st.tuples(st.just("get_asynchronous"), WHO, st.integers(1, 40)),
        st.tuples(st.just("make_pool"), WHO, st.sampled_from([0, 64, 1 << 20])),
        st.tuples(st.just("get_from_pool"), WHO, WHICH, st.integers(1, 40)),
        st.tuples(st.just("end_pool"), WHO, WHICH),
        st.tuples(st.just("make_graph"), WHO, st.sampled_from(["graph", "captured"]), st.integers(1, 300)),
        st.tuples(st.just("launch_graph"), WHO, WHICH),
        st.tuples(st.just("trim_graphs"), WHO),
        st.tuples(st.just("set_heap"), WHO, st.integers(0, 300)),
        st.tuples(st.just("use_context"), WHO, st.sampled_from(OF_CONTEXTS), HALVES_MIB, st.integers(0, 100)),
        st.tuples(st.just("free"), WHO, WHICH),
        st.tuples(st.just("sync"), WHO),
        st.tuples(st.just("share"), WHO, HALVES_MIB),
        st.tuples(st.just("stop"), WHO, st.sampled_from([*EXACT]), HALVES_MIB),
        st.tuples(st.just("kill"), WHO),
        st.tuples(st.just("kill_manager")),
        st.tuples(st.just("stop_manager"), WHO, st.sampled_from([*EXACT]), HALVES_MIB, st.integers(0, 3)),
    ),
    max_size=25,
)


def play(programs: Path, steps: list[tuple[object, ...]]) -> None:
    folder = Path(tempfile.mkdtemp(prefix="hook-", dir="/dev/shm"))
    stage = Stage(folder, programs)
    try:
        world = World(stage)
        world.check()
        for name, *arguments in steps:
            getattr(world, str(name))(*arguments)
            world.check()
        world.finish()
    finally:
        stage.end()
        shutil.rmtree(folder)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "first" in metafunc.fixturenames:
        most = SOAK if metafunc.config.getoption("soak") else STRETCH
        metafunc.parametrize("first", range(0, most, STRETCH))


@pytest.mark.timeout(900)
def test_after_any_sequence_all_memory_is_free_again_to_the_byte(programs: Path, first: int) -> None:
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]
    some = settings(max_examples=examples(STRETCH), deadline=None, suppress_health_check=checks)
    seed(first)(some(given(STEPS)(lambda steps: play(programs, steps))))()


def test_a_session_lasts_however_late_a_busy_manager_is(stage: Stage) -> None:
    """Or what is random above would be how busy the machine is."""
    world = World(stage)
    asking = world.programs[0].client
    with world.manager.paused():
        asking.tell("info")
        assert not asking.says_within(1.5)
    assert asking.answer()[0] == SUCCESS
    world.check()
    assert len(world.manager.connections) == len(world.programs)
    world.finish()
