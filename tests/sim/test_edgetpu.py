"""Shares of an EdgeTPU over simulated time: one program at a time has it, and keeps it until it gives it back."""

import itertools
from dataclasses import dataclass

import pytest

from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_S as S
from edgeshare.contract.units import NS_PER_US as US
from sharemgr.node.config import Config
from sharemgr.node.serving import tpu_settings
from tests.kit.sim.device.device_simulator import Simulation
from tests.kit.sim.device.programs import MESSAGE_NS, Program

SETTINGS = tpu_settings(Config())
WINDOW_NS = 10 * S
BACK_NS = 100 * US
"""How soon a program asks for the device again."""


@dataclass(frozen=True)
class Use:
    """What a program does with the device, again and again."""

    request_percent: int
    infer_ns: int
    think_ns: int = BACK_NS
    limit_percent: int = 100
    latency: bool = False
    keeps: bool = False
    """It opens the device once, and offers it to others after each inference. Else it opens it for each."""


class Infers(Program):
    """A program that uses it so."""

    def __init__(self, simulation: Simulation, name: str, use: Use) -> None:
        super().__init__(simulation, name, 1)
        self.use = use
        self.ran: list[tuple[int, int]] = []
        """From when to when each inference ran."""
        self._holds = 0
        self._called_back = False

    def begin(self, now_ns: int) -> None:
        self.request(now_ns)

    def opened(self, now_ns: int) -> None:
        self._holds, self._called_back = self.number, False
        self._infer(now_ns)

    def closed(self, now_ns: int, number: int) -> None:
        self._called_back = True

    def _infer(self, now_ns: int) -> None:
        self.simulation.at(now_ns + self.use.infer_ns, lambda at_ns: self._done(now_ns, at_ns))

    def _done(self, begin_ns: int, now_ns: int) -> None:
        self.executed(begin_ns, now_ns)
        self.ran.append((begin_ns, now_ns))
        if self.use.keeps and not self._called_back:
            self._infer(now_ns)
            return
        self.number = 0
        self.release(now_ns, self._holds, follows=False)
        self.simulation.at(now_ns + self.use.think_ns, self.request)


def simulated(uses: dict[str, Use], seconds: int = 30) -> tuple[Simulation, dict[str, Infers]]:
    """What came of it, and the programs."""
    simulation = Simulation(SETTINGS)
    programs = {}
    for name, use in uses.items():
        simulation.add(name, use.request_percent, use.limit_percent, use.latency)
        programs[name] = Infers(simulation, name, use)
        simulation.start(programs[name])
    simulation.run(seconds * S)
    return simulation, programs


def bound_percent(longest_ns: int) -> float:
    """On the error of a share over a window, in points: two turns, each of a slice and what is not interrupted."""
    return 100 * 2 * (SETTINGS.slice_ns + longest_ns + SETTINGS.anticipation_ns + 2 * MESSAGE_NS) / WINDOW_NS


PAIRS = [
    {"70": Use(70, 10 * MS), "30": Use(30, 10 * MS)},
    {"70": Use(70, 4 * MS), "30": Use(30, 25 * MS)},
    {"70": Use(70, 10 * MS, keeps=True), "30": Use(30, 10 * MS, keeps=True)},
    {"70": Use(70, 10 * MS, keeps=True), "30": Use(30, 25 * MS)},
]
IDS = ["opened for each", "of unequal lengths", "kept open", "one keeps it open"]


@pytest.mark.parametrize("uses", PAIRS, ids=IDS)
def test_two_get_their_shares_of_what_runs_and_one_at_a_time(uses: dict[str, Use]) -> None:
    simulation, programs = simulated(uses)
    longest_ns = max(use.infer_ns for use in uses.values())
    assert simulation.worst_error_percent({"70": 70, "30": 30}) <= bound_percent(longest_ns)
    ran = sorted(each for program in programs.values() for each in program.ran)
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(ran))
    # What is lost is the way from one to the next.
    assert sum(end_ns - begin_ns for begin_ns, end_ns in ran) > 0.95 * simulation.now_ns


@pytest.mark.parametrize("uses", PAIRS, ids=IDS)
def test_what_is_told_is_what_ran(uses: dict[str, Use]) -> None:
    simulation, programs = simulated(uses)
    for name, program in programs.items():
        account = simulation.arbiter.account(name, simulation.now_ns)
        executed_ns = simulation.executed_ns(name, simulation.now_ns - WINDOW_NS, simulation.now_ns)
        # Status tells the time held, as nobody else can use the device then: for each inference it may take until the
        # next is there, and one runs now.
        use = program.use
        between_ns = executed_ns / use.infer_ns * (use.think_ns + 3 * MESSAGE_NS)
        assert account.held_ns == pytest.approx(executed_ns, abs=between_ns + use.infer_ns)


@pytest.mark.parametrize("keeps", [False, True])
def test_a_limit_holds_when_nobody_else_wants_it(keeps: bool) -> None:
    simulation, _ = simulated({"limited": Use(20, 10 * MS, limit_percent=40, keeps=keeps)})
    assert simulation.worst_error_percent({"limited": 40}, of_wall=True) <= bound_percent(10 * MS) / 2


def test_one_of_the_latency_class_waits_for_no_more_than_what_runs() -> None:
    """An inference cannot be interrupted, but nobody else comes between."""
    batch = Use(40, 20 * MS)
    latency = Use(20, MS, think_ns=100 * MS, latency=True)
    simulation, programs = simulated({"one": batch, "other": batch, "latency": latency})
    assert len(programs["latency"].ran) > 200
    waited_ns = simulation.arbiter.account("latency", simulation.now_ns).longest_wait_ns
    assert 0 < waited_ns <= batch.infer_ns + 2 * MESSAGE_NS
