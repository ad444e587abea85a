"""Whether a device may take a pod is one answer, whoever asks: many devices at a time, one node, preemption, what is
reserved, and the words of a refusal."""

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest

from edgeshare.contract.errors import NoRoom, NotFound, Unavailable
from sharemgr.cluster.placement.few_nodes import Judge, Sums
from sharemgr.cluster.placement.placing import holding, rank
from sharemgr.cluster.placement.policies import POLICIES
from sharemgr.cluster.placement.preemption import victims
from sharemgr.cluster.placement.reasons import state_for
from sharemgr.cluster.placement.shapes import Shapes
from sharemgr.cluster.placement.table import Table
from sharemgr.cluster.state.books import Books
from sharemgr.cluster.state.eligibility import NOBODY, SEVERAL, Objection, has_room, held_by, is_exclusion, objection
from sharemgr.cluster.state.nodes import Device, Inventory
from sharemgr.cluster.state.pods import SharePod
from sharemgr.cluster.state.request import Ask, Holding, Request, Take

TOTAL_MIB = 1_000
WORDS = {
    Objection.MODEL: "is of model T4",
    Objection.AFFINITY: "is not that of its affinity",
    Objection.EXCLUSION: "holds pods of exclusion",
    Objection.HEALTH: "not healthy",
    None: "units free",
}

REQUESTS = [
    Request((ask,), models=models, affinity=affinity, exclusion=exclusion)
    for ask, models, affinity, exclusion in product(
        (Ask(1, 40), Ask(1, 40, 700), Ask(1, 100)), (frozenset[str](), frozenset({"T4"})), ("", "a"), ("", "x")
    )
]

Part = tuple[str, int, int, str, str]
HELD: list[list[Part]] = [
    # node, units, MiB, affinity, exclusion
    [],
    [("n", 60, 300, "", "")],
    [("n", 61, 300, "", "x")],
    [("n", 1, 301, "a", "x")],
    [("n", 1, 1_001, "a", "")],
    [("m", 60, 600, "a", "x")],
    [("n", 1, 1, "a", ""), ("m", 1, 1, "a", "x")],
    [("n", 30, 1, "", "x"), ("n", 30, 1, "", "y")],
    [("n", 100, 0, "", ""), ("n", 100, 0, "a", "")],
]
"""What is held of the devices of two nodes, each of which has one."""


@dataclass
class Asked:
    """A request of one ask, and a node of one device that others may hold parts of."""

    books: Books
    table: Table
    request: Request

    @property
    def ask(self) -> Ask:
        return self.request.asks[0]

    def among_all(self) -> bool:
        self.table.update(self.books.ledger)
        demand = Shapes().demand(self.table)
        ranking = rank(self.books.ledger, self.table, self.request, POLICIES["usable"], demand)
        return self.table.row["n"] in ranking.rows

    def one_node(self) -> bool:
        self.table.update(self.books.ledger)
        sums = Sums(Shapes().demand(self.table), self.table.width)
        return Judge(sums, self.table, self.request).fit(self.table.kind["n"], self.table.plain("n")) is not None

    def preemption(self) -> bool:
        return victims(self.books, SharePod("p", "d", "p", request=self.request), "n", ()) == []

    def reserved(self) -> bool:
        node = self.books.ledger.node("n")
        assert node is not None
        try:
            self.books.ledger.assume(holding(node, "p", self.request, [[0]]))
        except (NoRoom, NotFound, Unavailable):
            return False
        self.books.ledger.release("p")
        return True

    def words(self) -> str:
        node = self.books.ledger.node("n")
        assert node is not None
        return state_for(self.books.ledger, node, self.request)

    def objection(self) -> Objection | None:
        node = self.books.ledger.node("n")
        assert node is not None
        use = node.use.get("n-0")
        exclusions = () if use is None else use.exclusions
        together = self.books.ledger.together(self.request.affinity) if self.request.affinity else ()
        return objection(self.request, "n", node.devices["n-0"], exclusions, together)

    def has_room(self) -> bool:
        node = self.books.ledger.node("n")
        assert node is not None
        device = node.devices["n-0"]
        units, mib = node.free(device)
        return units >= self.ask.units and max(0, mib) >= self.ask.needed_mib(device.memory_mib)


@pytest.mark.parametrize("held", HELD, ids=str)
@pytest.mark.parametrize(
    ("model", "total_mib", "healthy"),
    [("T4", TOTAL_MIB, True), ("T4", TOTAL_MIB, False), ("A10", TOTAL_MIB, True), ("T4", 0, True)],
)
def test_all_who_ask_are_answered_the_same(model: str, total_mib: int, healthy: bool, held: list[Part]) -> None:
    for request in REQUESTS:
        check(request, model, total_mib, healthy, held)


def check(request: Request, model: str, total_mib: int, healthy: bool, held: list[Part]) -> None:
    asked = Asked(Books(), Table(), request)
    ledger = asked.books.ledger
    for name in ("n", "m"):
        ledger.set_inventory(Inventory(name, (Device(f"{name}-0", model, total_mib, healthy),)))
    for number, (name, units, memory_mib, affinity, exclusion) in enumerate(held):
        takes = (Take(f"{name}-0", units, memory_mib),)
        ledger.see(Holding(f"held{number}", name, takes, affinity=affinity, exclusion=exclusion))
    found, fits = asked.objection(), asked.has_room()
    takes_it = found is None and fits
    assert asked.among_all() == takes_it
    assert request.affinity or asked.one_node() == takes_it  # which is not asked about others
    assert asked.preemption() == takes_it
    # What is reserved was chosen by all rules; that it fits is made sure of once more.
    assert asked.reserved() == (healthy and fits)
    told = WORDS[found].replace("T4", model)
    # Of a node without any of the devices of its affinity these are all that is told.
    assert told in asked.words() or asked.words().startswith("pods of its affinity share GPU m-0")


def test_of_several_objections_the_first_is_told() -> None:
    request = Request((Ask(1, 1),), models=frozenset({"A10"}), affinity="a", exclusion="x")
    mended = [
        (request, {"model": "T4", "healthy": False}, ["y"], [("m", "h")]),
        (request, {"model": "A10", "healthy": False}, ["y"], [("m", "h")]),
        (request, {"model": "A10", "healthy": False}, ["y"], [("n", "g")]),
        (request, {"model": "A10", "healthy": False}, ["x"], [("n", "g")]),
        (request, {"model": "A10", "healthy": True}, ["x"], [("n", "g")]),
    ]
    told = [
        objection(asked, "n", Device("g", str(what["model"]), 1, bool(what["healthy"])), exclusions, together)
        for asked, what, exclusions, together in mended
    ]
    assert told == [*Objection, None]


@pytest.mark.parametrize(
    ("exclusions", "held"), [((), NOBODY), (("",), ""), (("x",), "x"), (("", "x"), SEVERAL), (("x", "y"), SEVERAL)]
)
def test_a_device_is_of_the_exclusion_that_all_who_hold_it_are_of(exclusions: tuple[str, ...], held: str | int) -> None:
    assert held_by(exclusions) == held
    assert [is_exclusion(own, held) for own in ("", "x")] == [set(exclusions) <= {own} for own in ("", "x")]


def test_of_many_devices_each_is_answered_as_it_is_alone() -> None:
    there = np.array([[NOBODY, SEVERAL, 0, 1]])
    assert is_exclusion(1, there).tolist() == [[is_exclusion(1, each) for each in there[0].tolist()]]
    free_units, free_mib = np.array([[50, 50, 49, 100]]), np.array([[0, 5, 5, 4]])
    alone = [
        has_room(units, mib, 50, 5) for units, mib in zip(free_units[0].tolist(), free_mib[0].tolist(), strict=True)
    ]
    assert (
        has_room(free_units, free_mib, 50, np.full_like(free_mib, 5)).tolist()
        == [alone]
        == [[False, True, False, False]]
    )
