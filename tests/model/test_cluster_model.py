"""The assigner's ledger, table and policies through whatever comes: no GPU is ever assumed beyond its units or its
memory, what is free is what nobody has, and nothing leaks."""

from collections import Counter
from itertools import combinations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from edgeshare.contract.units import UNITS_PER_DEVICE, memory_cap_mib
from sharemgr.cluster.placement.placing import choose
from sharemgr.cluster.placement.policies import POLICIES
from sharemgr.cluster.placement.shapes import Shapes
from sharemgr.cluster.placement.table import Table
from sharemgr.cluster.state.ledger import Ledger
from sharemgr.cluster.state.nodes import Device, Inventory
from sharemgr.cluster.state.request import Ask, Holding, Request
from tests.kit.properties.examples import examples

NODES = ("n0", "n1", "n2")
MEMORY_MIB = {"small": 0, "T4": 1000, "A100": 4000}
MODELS = st.sampled_from(tuple(MEMORY_MIB))
GPUS = st.lists(st.tuples(MODELS, st.booleans()), max_size=4)
PARTS = st.tuples(st.just(1), st.integers(1, 99), st.sampled_from((0, 0, 1, 700, 2500)))
WHOLE = st.tuples(st.integers(1, 3), st.just(UNITS_PER_DEVICE), st.sampled_from((0, 0, 900)))
REQUESTS = st.builds(
    lambda asks, cpu_milli, ram_mib, models: Request(tuple(Ask(*ask) for ask in asks), cpu_milli, ram_mib, models),
    st.lists(PARTS | WHOLE, max_size=3),
    st.integers(0, 3000),
    st.integers(0, 300),
    st.frozensets(MODELS, max_size=2),
)


class Assigner(RuleBasedStateMachine):
    """A cluster that changes under the assigner's hands."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger, self.table, self.shapes = Ledger(), Table(), Shapes()
        self.inventories: dict[str, Inventory] = {}
        self.bound: dict[str, Holding] = {}
        self.listed: dict[str, dict[str, Holding]] = {}
        self.pods = 0
        self.shrunk = False
        """Whether a node came to have less than pods hold of it."""

    @initialize(gpus=st.lists(GPUS, min_size=len(NODES), max_size=len(NODES)), cpu=st.none() | st.integers(0, 9000))
    def a_cluster(self, gpus: list[list[tuple[str, bool]]], cpu: int | None) -> None:
        for name, of_node in zip(NODES, gpus, strict=True):
            self.tell(name, of_node, cpu)

    def tell(self, name: str, gpus: list[tuple[str, bool]], cpu: int | None) -> None:
        self.inventories[name] = Inventory(
            name,
            tuple(Device(f"{name}-{i}", model, MEMORY_MIB[model], well) for i, (model, well) in enumerate(gpus)),
            cpu,
            cpu and cpu // 10,
        )
        self.ledger.set_inventory(self.inventories[name])

    @rule(request=REQUESTS, policy=st.sampled_from(tuple(POLICIES)))
    def a_pod_is_assigned(self, request: Request, policy: str) -> None:
        self.pods += 1
        uid = f"pod{self.pods}"
        self.shapes.see(request)
        self.table.update(self.ledger)
        holding = choose(self.ledger, self.table, uid, request, POLICIES[policy], self.shapes.demand(self.table))
        if holding is None:
            assert len(request.asks) > 1 or not self.brute_force(request)
            return
        assert len(holding.takes) == sum(ask.devices for ask in request.asks)
        models = {gpu.id: gpu.model for gpu in self.inventories[holding.node].devices}
        for take in holding.takes:
            assert not request.models or models[take.device_id] in request.models
        assert (holding.cpu_milli, holding.ram_mib) == (request.cpu_milli, request.ram_mib)
        self.ledger.assume(holding)
        self.bound[uid] = holding

    @precondition(lambda self: self.bound)
    @rule(which=st.integers(0))
    def a_binding_is_seen(self, which: int) -> None:
        holding = list(self.bound.values())[which % len(self.bound)]
        self.ledger.see(holding)
        assert not self.ledger.is_assumed(holding.uid)

    @precondition(lambda self: self.bound)
    @rule(which=st.integers(0), lingers=st.booleans())
    def a_pod_is_over(self, which: int, lingers: bool) -> None:
        holding = self.bound.pop(list(self.bound)[which % len(self.bound)])
        if lingers:
            self.listed.setdefault(holding.node, {})[holding.uid] = holding
            self.ledger.list_holdings(holding.node, self.listed[holding.node].values())
        self.ledger.release(holding.uid)

    @rule(name=st.sampled_from(NODES), lists_bound=st.booleans())
    def a_node_lets_go(self, name: str, lists_bound: bool) -> None:
        here = {uid: holding for uid, holding in self.bound.items() if holding.node == name and lists_bound}
        self.listed[name] = here
        self.ledger.list_holdings(name, here.values())

    @rule(name=st.sampled_from(NODES), gpus=GPUS, cpu=st.none() | st.integers(0, 9000))
    def a_node_changes(self, name: str, gpus: list[tuple[str, bool]], cpu: int | None) -> None:
        self.shrunk = True
        self.tell(name, gpus, cpu)

    @rule(name=st.sampled_from(NODES))
    def a_node_goes(self, name: str) -> None:
        self.shrunk = True
        self.inventories[name] = Inventory(name, ())
        self.listed.pop(name, None)
        self.ledger.drop_node(name)

    def held(self) -> dict[str, Holding]:
        listed = {uid: holding for of_node in self.listed.values() for uid, holding in of_node.items()}
        return listed | self.bound

    def free(self) -> dict[str, tuple[int, int]]:
        units: Counter[str] = Counter()
        memory_mib: Counter[str] = Counter()
        for holding in self.held().values():
            for take in holding.takes:
                units[take.device_id] += take.units
                memory_mib[take.device_id] += take.memory_mib
        return {
            gpu.id: (UNITS_PER_DEVICE - units[gpu.id], gpu.memory_mib - memory_mib[gpu.id])
            for inventory in self.inventories.values()
            for gpu in inventory.devices
        }

    def brute_force(self, request: Request) -> bool:
        """Whether a pod of one container, or of none with GPUs, fits anywhere."""
        free = self.free()
        for name, inventory in self.inventories.items():
            here = [holding for holding in self.held().values() if holding.node == name]
            cpu_milli = sum(holding.cpu_milli for holding in here)
            ram_mib = sum(holding.ram_mib for holding in here)
            if self.ledger.node(name) is None:
                continue
            if inventory.cpu_milli is not None and cpu_milli + request.cpu_milli > inventory.cpu_milli:
                continue
            if inventory.ram_mib is not None and ram_mib + request.ram_mib > inventory.ram_mib:
                continue
            if not request.asks:
                return True
            (ask,) = request.asks
            fitting = [
                gpu
                for gpu in inventory.devices
                if gpu.healthy
                and (not request.models or gpu.model in request.models)
                and free[gpu.id][0] >= ask.units
                and free[gpu.id][1] >= memory_cap_mib(ask.memory_mib, gpu.memory_mib, ask.units)
            ]
            if any(combinations(fitting, ask.devices)):
                return True
        return False

    @invariant()
    def what_is_free_is_what_nobody_has(self) -> None:
        free = self.free()
        for name, inventory in self.inventories.items():
            node = self.ledger.node(name)
            for gpu in inventory.devices:
                assert node is not None
                assert node.free(gpu) == free[gpu.id]

    @invariant()
    def nothing_is_over_committed(self) -> None:
        if not self.shrunk:
            assert self.ledger.overcommitted() == []
            assert all(units >= 0 and memory_mib >= 0 for units, memory_mib in self.free().values())

    @invariant()
    def the_table_says_what_the_ledger_says(self) -> None:
        self.table.update(self.ledger)
        rows = self.table.rows
        assert {node.inventory.node for node in self.ledger} == set(self.table.row)
        free = self.free()
        for name, row in self.table.row.items():
            assert self.table.nodes[row] == name
            gpus = self.inventories[name].devices
            for place in range(rows.free_units.shape[1]):
                well = place < len(gpus) and gpus[place].healthy
                units, memory_mib = free[gpus[place].id] if well else (0, 0)
                assert rows.free_units[row, place] == max(0, units)
                assert rows.free_mib[row, place] == max(0, memory_mib)

    def teardown(self) -> None:
        for uid in list(self.bound):
            self.ledger.release(uid)
        for name in NODES:
            self.ledger.list_holdings(name, ())
        assert not self.ledger.overcommitted()
        for node in self.ledger:
            assert not node.use
            assert (node.cpu_milli, node.ram_mib) == (0, 0)
        for name in NODES:
            self.ledger.drop_node(name)
        assert list(self.ledger) == []


TestAssigner = Assigner.TestCase
TestAssigner.settings = settings(max_examples=examples(150), stateful_step_count=40, deadline=None)
