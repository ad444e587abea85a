"""What programs that leave gaps have of the GPU beside others, over many mixes; and that by turns they have less."""

import pytest

from tests.kit.sim.device import gate_figures
from tests.kit.sim.device.mixes import MIXES
from tests.kit.virtual.figures.mix_figures import FILE, PARTS, RECORDS, WHOLE, Measured, in_one
from tests.kit.virtual.world import World

pytestmark = [pytest.mark.whole, pytest.mark.timeout(4 * 3600)]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parts of the mixes, and with --soak all of them."""
    if "group" in metafunc.fixturenames:
        groups = PARTS | WHOLE if metafunc.config.getoption("soak") else PARTS
        metafunc.parametrize("group", groups)


def test_each_group_is_recorded() -> None:
    assert set(gate_figures.recorded(FILE)) == {*PARTS, *WHOLE}


def test_no_figure_is_worse_than_when_it_was_recorded(world: World, group: str) -> None:
    gate_figures.hold(group, (PARTS | WHOLE)[group](in_one(world)), FILE, RECORDS)


def test_by_turns_too_many_have_less_than_they_should(world: World) -> None:
    measured = Measured()
    by_turns = gate_figures.grid([measured.row(world.run, mix, seen=False) for mix in MIXES[3::150]])
    missed = [name for name, figure in by_turns.items() if not figure.met]
    assert "used / min(d, r), mean" in missed
    assert "light loads that keep 0.9 of what they have with no gates, part" in missed
