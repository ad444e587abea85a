"""What status says of the guarantee: what each wanted is what it uses alone, whoever else is there."""

from functools import cache

import pytest

from tests.kit.virtual.cases.case import Case
from tests.kit.virtual.cases.oracles import bare
from tests.kit.virtual.figures.thinking import MIXES
from tests.kit.virtual.world import World

WANTED_POINTS = 5
"""A program that leaves the device and comes back pays for the way, which it does not alone."""
GOT_POINTS = 2


@pytest.mark.parametrize("mix", MIXES)
def test_each_is_told_what_it_wanted_was_due_and_got(world: World, mix: str) -> None:
    clients = MIXES[mix]
    case = Case(clients=clients, settle_ms=4000, measure_ms=9000, scheduling="timeslice")
    run = cache(world.run)
    report = run(case)
    last = report.steps[-1]
    for index, (name, client) in enumerate(zip(case.names, clients, strict=True)):
        alone_percent = run(bare(case, index)).busy_percent("c0")
        wanted, due = last["wanted_percent"][name], last["due_percent"][name]
        assert wanted == pytest.approx(alone_percent, abs=WANTED_POINTS)
        assert due == min(wanted, client.percent)
        assert last["met_ratio"][name] * due == pytest.approx(min(due, report.busy_percent(name)), abs=GOT_POINTS)
