"""What was judged of a kind of node once is what the policy would say of each of that kind now."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeshare.contract.errors import EdgeshareError
from sharemgr.cluster.placement import node_kinds
from sharemgr.cluster.placement import table as table_module
from sharemgr.cluster.placement.few_nodes import Fit, Judge
from sharemgr.cluster.placement.node_kinds import NodeKinds
from sharemgr.cluster.placement.placing import rank, take_best
from sharemgr.cluster.placement.policies import POLICIES
from sharemgr.cluster.placement.rows import Row
from sharemgr.cluster.placement.shapes import Shapes
from sharemgr.cluster.placement.table import Table
from sharemgr.cluster.state.ledger import Ledger
from sharemgr.cluster.state.nodes import Device, Inventory
from sharemgr.cluster.state.request import Ask, Holding, Request, Take
from tests.kit.properties.examples import examples

NAMES = [f"n{number}" for number in range(6)]

UNTOLD = "untold"

SIZES = ((1, 5), (1, 30), (1, 50), (1, 70), (1, 100), (2, 100))
REQUESTS = st.builds(
    lambda size, memory_mib, cpu_milli, models, exclusion: Request(
        (Ask(*size, memory_mib),), cpu_milli, cpu_milli // 2, models=models, exclusion=exclusion
    ),
    st.sampled_from(SIZES),
    st.sampled_from((0, 0, 6_000)),
    st.sampled_from((0, 500, 2_000)),
    st.sampled_from((frozenset[str](), frozenset({"A10"}))),
    st.sampled_from(("", "", "team")),
)
INVENTORIES = st.builds(
    lambda name, models, healthy, cpu_milli: Inventory(
        name,
        tuple(Device(f"{name}-{place}", model, 24_000, healthy or place > 0) for place, model in enumerate(models)),
        cpu_milli,
        cpu_milli,
    ),
    st.sampled_from(NAMES),
    st.lists(st.sampled_from(("A10", "A10", "T4")), max_size=9),
    st.booleans(),
    st.sampled_from((None, 4_000, 16_000)),
)


def cluster(policy: str, cpu_milli: int = 16_000) -> tuple[Ledger, Table, Shapes, NodeKinds]:
    ledger = Ledger()
    for name in NAMES:
        gpus = tuple(Device(f"{name}-{place}", "A10", 24_000) for place in range(3))
        ledger.set_inventory(Inventory(name, gpus, cpu_milli, 16_000))
    return ledger, Table(), Shapes(), NodeKinds(POLICIES[policy])


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_the_best_by_kinds_is_the_best_of_all(policy: str, data: st.DataObject) -> None:
    ledger, table, shapes, kinds = cluster(policy, cpu_milli=4_000)
    held: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        # The kinds among the names, or the kind of each.
        patch.setattr(node_kinds, "NAMES_A_KIND", data.draw(st.sampled_from((0, 1_000))))
        for number in range(data.draw(st.integers(5, 25))):
            change = data.draw(st.sampled_from(("none", "none", "none", "release", "inventory")))
            if change == "release" and held:
                ledger.release(held.pop(data.draw(st.integers(0, len(held) - 1))))
            elif change == "inventory":
                ledger.set_inventory(data.draw(INVENTORIES))
            request = data.draw(REQUESTS)
            shapes.see(request)
            table.update(ledger)
            demand = shapes.demand(table)
            names = Random(data.draw(st.integers(0, 99))).sample([*NAMES, UNTOLD], data.draw(st.integers(1, 7)))
            rows = np.array([table.row[name] for name in names if name in table.row], np.int64)
            ranking = rank(ledger, table, request, POLICIES[policy], demand, rows, passed=True)
            expected = take_best(ledger, table, f"p{number}", request, ranking)
            found = kinds.best(ledger, table, f"p{number}", request, demand, names)
            assert found == (None if expected is None else (expected, float(ranking.scores.max())))
            if found is not None and hold(ledger, found[0]):
                held.append(found[0].uid)


def hold(ledger: Ledger, holding: Holding) -> bool:
    try:
        ledger.assume(holding)
    except EdgeshareError:
        return False
    return True


@pytest.mark.parametrize("policy", ["fgd", "usable"])
def test_a_kind_is_judged_once_for_a_request_until_the_demand_or_the_width_is_another(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, table, shapes, kinds = cluster(policy)
    judged: list[int] = []

    def ranked(*args: object, **more: object) -> object:
        judged.extend(args[5])  # type: ignore[arg-type]
        return rank(*args, **more)  # type: ignore[arg-type]

    def fit(judge: Judge, kind: int, row: Row) -> Fit | None:
        judged.append(kind)
        return one_by_one(judge, kind, row)

    one_by_one = Judge.fit
    monkeypatch.setattr(node_kinds, "rank", ranked)
    monkeypatch.setattr(Judge, "fit", fit)
    request = Request((Ask(1, 30),))
    shapes.see(request)
    table.update(ledger)
    demand = shapes.demand(table)
    for number in range(3):
        kinds.best(ledger, table, f"p{number}", request, demand, NAMES)
    assert len(judged) == 1
    ledger.assume(Holding("x", "n3", kinds.best(ledger, table, "x", request, demand, ["n3"])[0].takes))  # type: ignore[index]
    table.update(ledger)
    kinds.best(ledger, table, "y", request, demand, NAMES)
    assert len(judged) == 2
    kinds.best(ledger, table, "y", Request((Ask(1, 50),)), demand, NAMES)
    assert len(judged) == 4
    shapes.see(Request((Ask(1, 50),)))
    demand = shapes.demand(table)
    kinds.best(ledger, table, "y", request, demand, NAMES)
    assert len(judged) == 6
    # Arrays of more columns are added up in another order.
    ledger.set_inventory(Inventory("n1", tuple(Device(f"n1-{place}", "A10", 24_000) for place in range(9))))
    table.update(ledger)
    kinds.best(ledger, table, "y", request, demand, NAMES)
    assert len(judged) == 9


def test_a_kind_of_no_node_is_remembered_until_there_are_too_many_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_module, "KINDS_GONE_MAX", 4)
    ledger, table, _, _ = cluster("usable")
    table.update(ledger)
    (idle,) = table.of_kind

    def after(units: int) -> int:
        ledger.assume(Holding("x", "n0", (Take("n0-0", units, 0),)))
        table.update(ledger)
        taken = table.kind["n0"]
        ledger.release("x")
        table.update(ledger)
        assert table.kind["n0"] == idle
        assert table.of_kind == {idle: set(NAMES)}
        return taken

    first = after(1)
    assert after(1) == first
    assert len({first, *(after(units) for units in range(2, 20))}) == 19
    assert after(1) not in (first, idle)
