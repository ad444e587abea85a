"""What shapes make of free units, held against their definitions, worked out pod by pod and GPU by GPU."""

from random import Random

import numpy as np
import pytest

from edgeshare.contract.units import UNITS_PER_DEVICE
from sharemgr.cluster.placement.demand import Demand, Seen, Shape, weigh
from sharemgr.cluster.placement.options import NOTHING, find_options
from sharemgr.cluster.placement.placing import choose
from sharemgr.cluster.placement.policies import POLICIES
from sharemgr.cluster.placement.policies.fgd import node_worth, worth_growth
from sharemgr.cluster.placement.rows import Rows
from sharemgr.cluster.placement.shapes import HALVE_AT, SHAPES_MAX, Shapes, shapes_of
from sharemgr.cluster.placement.table import Table
from sharemgr.cluster.state.ledger import Ledger
from sharemgr.cluster.state.nodes import Device, Inventory
from sharemgr.cluster.state.request import Ask, Request

MODELS = ("T4", "A100")
SHAPES = {
    Shape(Ask(1, 30), 2000, frozenset()): Seen(5, 5000),
    Shape(Ask(1, 81), 6000, frozenset()): Seen(3, 9000),
    Shape(Ask(1, 50), 9000, frozenset({"A100"})): Seen(2, 100),
    Shape(Ask(1, 100), 8000, frozenset()): Seen(4, 64000),
    Shape(Ask(2, 100), 16000, frozenset()): Seen(2, 3000),
    Shape(Ask(4, 100), 30000, frozenset({"A100"})): Seen(1, 0),
}
PODS = sum(seen.pods for seen in SHAPES.values())
Node = tuple[str, list[int], int]
"""Model, free units of each GPU, free millicores."""


def random_nodes(random: Random) -> list[Node]:
    return [
        (
            random.choice(MODELS),
            [random.choice((0, 19, 30, 50, 70, 100, 100, 100, 100)) for _ in range(random.choice((1, 2, 4)))],
            random.choice((0, 1999, 2000, 8000, 9000, 16000, 40000, 40000)),
        )
        for _ in range(12)
    ]


def table_of(nodes: list[Node]) -> Table:
    table, ledger = Table(), Ledger()
    for number, (model, gpus, cpu_milli) in enumerate(nodes):
        inventory = tuple(Device(f"{number}-{place}", model, 0) for place in range(len(gpus)))
        ledger.set_inventory(Inventory(str(number), inventory, cpu_milli, 10**6))
    table.update(ledger)
    for number, (_, gpus, _) in enumerate(nodes):
        table.rows.free_units[number, : len(gpus)] = gpus
    return table


def usable(node: Node, shape: Shape) -> int:
    """Free units of a node that a pod of this shape can use, as FGD's authors define it."""
    model, gpus, cpu_milli = node
    fitting = [free for free in gpus if free >= shape.ask.units]
    fits = len(fitting) >= shape.ask.devices and cpu_milli >= shape.cpu_milli
    return sum(fitting) if fits and (not shape.models or model in shape.models) else 0


def placed(node: Node, ask: Ask, cpu_milli: int, place: int) -> Node:
    model, gpus, free_cpu_milli = node
    gpus = list(gpus)
    for each in [place, *(other for other, free in enumerate(gpus) if free == 100 and other != place)][: ask.devices]:
        gpus[each] -= ask.units
    return model, gpus, free_cpu_milli - cpu_milli


def price(nodes: list[Node], shape: Shape) -> float:
    """All free units over those that the shape can use, where whole pods of several GPUs count."""
    per_pod = shape.ask.devices * shape.ask.units
    can_use = sum(
        usable(node, shape) // per_pod * per_pod if shape.ask.devices > 1 else usable(node, shape) for node in nodes
    )
    return sum(sum(gpus) for _, gpus, _ in nodes) / max(can_use, per_pod)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("ask", [Ask(1, 19), Ask(1, 50), Ask(1, 100), Ask(2, 100), NOTHING], ids=str)
def test_growth_is_what_the_definitions_say(seed: int, ask: Ask) -> None:
    nodes = random_nodes(Random(seed))
    table = table_of(nodes)
    demand = weigh(SHAPES, table)
    options = find_options(table.rows, ask, None, 1500, 0)
    weights = {shape: seen.pods / PODS for shape, seen in SHAPES.items()}
    prices = {shape: price(nodes, shape) for shape in SHAPES}
    assert len(options.index) or ask.devices > 1
    for worth, of in ((demand.plain, weights), (demand.priced, {s: weights[s] * prices[s] for s in SHAPES})):
        growth = worth_growth(options, demand, worth)
        for row, number in enumerate(options.index):
            before = nodes[number]
            for place in np.flatnonzero(options.fits[row]):
                after = placed(before, ask, 1500, int(place))
                expected = sum(weight * (usable(after, s) - usable(before, s)) for s, weight in of.items())
                assert growth[row, place] == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(4))
def test_a_nodes_worth_is_what_the_next_pod_can_use_of_it(seed: int) -> None:
    nodes = random_nodes(Random(seed))
    table = table_of(nodes)
    demand = weigh(SHAPES, table)
    worth = node_worth(table.rows, table.rows.usable_units(), table.rows.idle(), demand, demand.plain)
    for node, found in zip(nodes, worth[: len(nodes)], strict=True):
        assert found == pytest.approx(sum(seen.pods / PODS * usable(node, s) for s, seen in SHAPES.items()))


def test_units_that_find_no_cores_are_not_usable() -> None:
    demand = weigh(SHAPES, table_of(random_nodes(Random(0))))
    asked = sum(seen.pods * shape.ask.devices * shape.ask.units for shape, seen in SHAPES.items())
    for free_units, cpu_milli, ram_mib in ((100, 9000, 4000), (250, 9000, 99), (37, 10**6, 10**6), (0, 5, 5)):
        with_cpu = with_ram = 0.0
        for shape, seen in SHAPES.items():
            units = shape.ask.devices * shape.ask.units
            part = seen.pods * units / asked
            with_cpu += part * min(free_units, cpu_milli * units / shape.cpu_milli)
            with_ram += part * min(
                free_units, ram_mib * seen.pods * units / max(seen.ram_mib, 1e-3 * seen.pods * units)
            )
        units_, cpu, ram = (np.array([number]) for number in (free_units, cpu_milli, ram_mib))
        assert demand.cpu.usable_units(units_, cpu)[0] == pytest.approx(with_cpu)
        assert demand.ram.usable_units(units_, ram)[0] == pytest.approx(with_ram)


def test_memory_counts_as_the_units_that_it_uses_up() -> None:
    ledger, table = Ledger(), Table()
    ledger.set_inventory(Inventory("n", (Device("a", "T4", 1000), Device("b", "A100", 4000))))
    table.update(ledger)
    demand = weigh({Shape(Ask(1, 10, memory_mib=1500), 0, frozenset()): Seen(1, 0)}, table)
    level = demand.level(table.rows.cpu_milli)
    for free, expected in ((100, [0, 100]), (38, [0, 38]), (37, [0, 0])):
        assert demand.plain.of_gpus(table.rows.model, level, np.array([[free, free]])).tolist() == [expected]


def test_what_memory_is_left_for_is_usable_and_no_more() -> None:
    def rows(free_units: int, free_mib: int, total_mib: int) -> Rows:
        return Rows(
            *(np.array([[number]]) for number in (free_units, free_mib, total_mib, 0, 0)),
            *(np.array([0]) for _ in range(2)),
        )

    assert rows(60, 300, 1000).usable_units() == 30
    assert rows(20, 300, 1000).usable_units() == 20
    assert rows(60, 0, 0).usable_units() == 60


def test_a_pods_cpu_and_ram_are_parted_among_its_containers_as_its_units_are() -> None:
    models = frozenset({"T4"})
    shapes = shapes_of(Request((Ask(1, 50), Ask(1, 100), Ask(1, 50)), 8000, 400, models))
    assert shapes == [
        (Shape(Ask(1, 50), 2000, models), 100),
        (Shape(Ask(1, 100), 4000, models), 200),
        (Shape(Ask(1, 50), 2000, models), 100),
    ]
    assert shapes_of(Request((), 8000, 400)) == []


def one_gpu_table() -> Table:
    return table_of([("T4", [100], 10**6)])


def part_of(demand: Demand, units: int) -> float:
    """The part of pods that ask for up to so many units."""
    found: float = demand.plain.one[0, -1, units] / units
    return found


def test_a_shape_that_no_longer_comes_is_forgotten() -> None:
    shapes, table = Shapes(), one_gpu_table()
    shapes.see(Request((Ask(1, 10),)))
    assert part_of(shapes.demand(table), 10) == 1
    for _ in range(HALVE_AT):
        shapes.see(Request((Ask(1, 20),)))
    first = part_of(shapes.demand(table), 10)
    for _ in range(HALVE_AT):
        shapes.see(Request((Ask(1, 20),)))
    assert 0 < part_of(shapes.demand(table), 10) < first / 2.5


def test_a_model_that_appears_later_is_known_at_once() -> None:
    shapes, ledger, table = Shapes(), Ledger(), Table()
    for _ in range(100):
        shapes.see(Request((Ask(1, 10),)))
    for number in range(3):
        ledger.set_inventory(Inventory(f"n{number}", (Device(f"gpu{number}", f"model{number}", 0),)))
        table.update(ledger)
        assert shapes.demand(table).plain.one.shape[0] == number + 2  # and that of no GPU


def test_of_too_many_shapes_the_rarest_is_dropped() -> None:
    shapes, table = Shapes(), one_gpu_table()
    for _ in range(2):
        shapes.see(Request((Ask(1, 10),), cpu_milli=0))
    for number in range(1, SHAPES_MAX + 50):
        shapes.see(Request((Ask(1, 20),), cpu_milli=number))
    demand = shapes.demand(table)
    assert len(demand.cpu_levels) == SHAPES_MAX
    assert part_of(demand, 10) == pytest.approx(2 / (SHAPES_MAX + 1))
    assert demand.cpu_levels[-1] == SHAPES_MAX + 49


def test_a_policy_chooses_before_any_pod_was_seen() -> None:
    ledger, table = Ledger(), Table()
    ledger.set_inventory(Inventory("n", (Device("a", "T4", 1000),)))
    table.update(ledger)
    for policy in POLICIES.values():
        assert choose(ledger, table, "p", Request((Ask(1, 10),)), policy, Shapes().demand(table)) is not None


def test_shapes_are_weighed_anew_when_a_twentieth_more_pods_have_come() -> None:
    shapes, table = Shapes(), one_gpu_table()
    for _ in range(100):
        shapes.see(Request((Ask(1, 10),)))
    first = shapes.demand(table)
    for _ in range(5):
        shapes.see(Request((Ask(1, 10),)))
        assert shapes.demand(table) is first
    shapes.see(Request((Ask(1, 10),)))
    assert shapes.demand(table) is not first
    assert UNITS_PER_DEVICE * part_of(shapes.demand(table), 100) == 100
