"""The assigner as a whole, through whatever pods and nodes say in whatever order: its ledger is what a plain account of
all that was said comes to, and its verbs agree with each other and with that account."""

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from edgeshare.contract.errors import NoRoom, NotFound
from edgeshare.contract.units import UNITS_PER_DEVICE, memory_cap_mib
from sharemgr.cluster.extender.assigner import Assigner
from sharemgr.cluster.placement.policies import POLICIES
from sharemgr.cluster.state.books import AcceleratorNode, Listed
from sharemgr.cluster.state.nodes import Device, Inventory
from sharemgr.cluster.state.request import Take
from tests.kit.assigner.plain_account import PlainAccount, Said
from tests.kit.properties.examples import examples

NODES = ("n0", "n1", "n2")
FAULT = "it tells nonsense"
MEMORY_MIB = {"small": 0, "T4": 1000, "A100": 4000}

GPUS = st.lists(st.tuples(st.sampled_from(tuple(MEMORY_MIB)), st.booleans() | st.just(True)), min_size=1, max_size=3)
PERCENTS = st.sampled_from(((30,), (50,), (60,), (100,), (200,), (20, 50), (100, 40)))
MEMORY = st.sampled_from((0, 0, 300, 900))
AFFINITY, EXCLUSION = st.sampled_from(("", "", "a", "b")), st.sampled_from(("", "", "x", "y"))
LIES = st.sampled_from(
    (
        None,
        "",
        "{",
        "[]",
        '{"c0":["nowhere"]}',
        '{"c0":["n0-0"]}',
        '{"c0":["n1-1"],"c1":["n1-1"]}',
        '{"c0":["n0-0","n0-1"]}',
    )
)


class Everything(PlainAccount, RuleBasedStateMachine):
    """A cluster whose pods and nodes say what they like."""

    def __init__(self) -> None:
        PlainAccount.__init__(self)
        RuleBasedStateMachine.__init__(self)
        self.assigner, self.keeps = Assigner(POLICIES["usable"]), False
        self.pods = 0

    @initialize(
        policy=st.sampled_from(sorted(POLICIES)),
        keeps=st.sampled_from((False, False, True)),
        gpus=st.lists(GPUS, min_size=len(NODES), max_size=len(NODES)),
    )
    def a_cluster(self, policy: str, keeps: bool, gpus: list[list[tuple[str, bool]]]) -> None:
        self.assigner, self.keeps = Assigner(POLICIES[policy], keeps), keeps
        for name, of_node in zip(NODES, gpus, strict=True):
            self.a_node_has_gpus(name=name, gpus=of_node)

    @rule(name=st.sampled_from(NODES), gpus=GPUS)
    def a_node_has_gpus(self, name: str, gpus: list[tuple[str, bool]]) -> None:
        inventory = Inventory(
            name,
            tuple(Device(f"{name}-{n}", model, MEMORY_MIB[model], well) for n, (model, well) in enumerate(gpus)),
        )
        allocations = self.told[name].allocations if name in self.told else ()
        self.tell(AcceleratorNode(inventory, allocations))

    def tell(self, node: AcceleratorNode) -> None:
        self.told[node.name] = node
        self.assigner.node_told("MODIFIED", node)

    @precondition(lambda self: self.told)
    @rule(data=st.data())
    def a_node_lists_what_its_pods_have(self, data: st.DataObject) -> None:
        node = self.told[data.draw(st.sampled_from(sorted(self.told)))]
        totals_mib = {gpu.id: gpu.memory_mib for gpu in node.inventory.devices}
        here = {uid: said for uid, said in self.bound.items() if said.node == node.name}
        listed = data.draw(st.sets(st.sampled_from(sorted(here)))) if here else set()
        keeps = data.draw(st.booleans())
        self.tell(
            replace(
                node,
                allocations=(
                    *(Listed(f"of {uid}", uid, tuple(here[uid].takes(totals_mib) or ())) for uid in sorted(listed)),
                    *(each for each in node.allocations if keeps and each.pod_uid not in listed),
                ),
            )
        )

    @precondition(lambda self: self.told)
    @rule(data=st.data(), place=st.integers(0, 3), units=st.integers(1, 100), memory_mib=st.integers(0, 900))
    def a_node_lists_what_it_likes(self, data: st.DataObject, place: int, units: int, memory_mib: int) -> None:
        node = self.told[data.draw(st.sampled_from(sorted(self.told)))]
        uid = data.draw(st.sampled_from(["", "nobody", *self.bound]))
        lie = Listed(f"lie {place}", uid, (Take(f"{node.name}-{place}", units, memory_mib),))
        self.tell(replace(node, allocations=(*node.allocations, lie)))

    @rule(name=st.sampled_from(NODES))
    def a_node_tells_nonsense(self, name: str) -> None:
        self.tell(AcceleratorNode(Inventory(name, ()), fault=FAULT))

    @rule(name=st.sampled_from(NODES))
    def a_node_goes(self, name: str) -> None:
        gone = self.told.pop(name, AcceleratorNode(Inventory(name, ())))
        self.assigner.node_told("DELETED", gone)

    @rule(gone=st.sets(st.sampled_from(NODES), max_size=1))
    def nodes_are_listed_anew(self, gone: set[str]) -> None:
        self.told = {name: node for name, node in self.told.items() if name not in gone}
        self.assigner.nodes_listed(list(self.told.values())[::-1])

    @rule(
        percents=PERCENTS,
        memory_mib=MEMORY,
        affinity=AFFINITY,
        exclusion=EXCLUSION,
        models=st.sampled_from(("", "", "T4")),
    )
    def a_pod_comes(
        self, percents: tuple[int, ...], memory_mib: int, affinity: str, exclusion: str, models: str
    ) -> None:
        self.pods += 1
        said = Said(f"pod{self.pods}", percents, memory_mib, affinity, exclusion, models)
        names = [*NODES, "unknown"]
        found = self.assigner.filter(said.pod, names)
        if self.keeps and found.nodes:
            assert (len(found.nodes), found.failed, found.never) == (1, {}, {})
        else:
            assert sorted([*found.nodes, *found.failed, *found.never]) == sorted(names)
        for name, why in {**found.failed, **found.never}.items():
            self.check_reason(name, why)
        if said.pod.fault:
            assert set(found.never) == set(names)
            return
        can_hold = {name for name in names if self.can_be_decided(said, name)}
        assert set(found.nodes) <= can_hold if self.keeps and found.nodes else set(found.nodes) == can_hold
        if len(percents) == 1:
            assert can_hold == {name for name in self.told if self.fits(said, name)}
        if not found.nodes:
            return
        scores = self.assigner.prioritize(said.pod, found.nodes)
        assert list(scores.values()).count(10) == 1
        best = max(scores, key=scores.__getitem__)
        for name in sorted(can_hold, key=lambda name: name == best):
            placed, holding = self.assigner.decide(said.pod, name)
            # Raises where it would over-commit.
            self.assigner.books.ledger.assume(holding)
            if name != best:
                self.assigner.books.ledger.release(said.uid)
        self.assumed[said.uid] = replace(said, node=best, assignment=placed.assignment), holding

    def can_be_decided(self, said: Said, name: str) -> bool:
        try:
            self.assigner.decide(said.pod, name)
        except (NoRoom, NotFound):
            return False
        return True

    def check_reason(self, name: str, why: str) -> None:
        assert "%" not in why
        assert why.isprintable()
        node = self.told.get(name)
        others = ("pods of its affinity share", "share a GPU", "share one GPU")
        if node is None or any(text in why for text in others):
            return
        if node.fault:
            assert why == FAULT
        else:
            assert all(f"gpu {place}: " in why for place in range(len(node.inventory.devices)))

    @precondition(lambda self: self.assumed)
    @rule(data=st.data(), is_seen=st.booleans() | st.just(True))
    def a_binding_is_seen_or_came_to_nothing(self, data: st.DataObject, is_seen: bool) -> None:
        uid = data.draw(st.sampled_from(sorted(self.assumed)))
        said, _ = self.assumed.pop(uid)
        if is_seen:
            self.bound[uid] = said
            self.assigner.pod_told("MODIFIED", said.pod)
        else:
            self.assigner.books.ledger.release(uid)

    @rule(
        name=st.sampled_from(NODES),
        percents=PERCENTS,
        memory_mib=MEMORY,
        affinity=AFFINITY,
        exclusion=EXCLUSION,
        lie=LIES,
    )
    def a_pod_is_bound_by_others(
        self, name: str, percents: tuple[int, ...], memory_mib: int, affinity: str, exclusion: str, lie: str | None
    ) -> None:
        self.pods += 1
        said = Said(f"pod{self.pods}", percents, memory_mib, affinity, exclusion, "", name, lie)
        self.bound[said.uid] = said
        self.assigner.pod_told("ADDED", said.pod)

    @precondition(lambda self: self.bound)
    @rule(data=st.data(), affinity=AFFINITY, exclusion=EXCLUSION, lie=LIES)
    def a_pod_is_edited(self, data: st.DataObject, affinity: str, exclusion: str, lie: str | None) -> None:
        said = self.bound[data.draw(st.sampled_from(sorted(self.bound)))]
        edited = replace(said, affinity=affinity, exclusion=exclusion, assignment=lie)
        self.assigner.pod_told("MODIFIED", edited.pod)
        if said.assignment is None:
            # Nobody had said which GPUs: a plugin may do so later.
            self.bound[said.uid] = replace(said, assignment=lie)

    @precondition(lambda self: self.bound)
    @rule(data=st.data(), is_over=st.booleans())
    def a_pod_ends(self, data: st.DataObject, is_over: bool) -> None:
        said = self.bound.pop(data.draw(st.sampled_from(sorted(self.bound))))
        if is_over:
            self.assigner.pod_told("MODIFIED", replace(said, phase="Succeeded").pod)
        else:
            self.assigner.pod_told("DELETED", said.pod)

    @rule(data=st.data())
    def pods_are_listed_anew(self, data: st.DataObject) -> None:
        gone = data.draw(st.sets(st.sampled_from(sorted(self.bound)), max_size=2)) if self.bound else set()
        self.bound = {uid: said for uid, said in self.bound.items() if uid not in gone}
        for uid in data.draw(st.sets(st.sampled_from(sorted(self.assumed)), max_size=1)) if self.assumed else ():
            self.bound[uid], _ = self.assumed.pop(uid)
        self.assigner.pods_listed([said.pod for said in self.bound.values()][::-1])

    def fits(self, said: Said, name: str) -> bool:
        """Whether a pod of one container fits a node."""
        ledger = self.assigner.books.ledger
        there = ledger.node(name)
        together = ledger.together(f"d/{said.affinity}") if said.affinity else {}
        (percent,) = said.percents
        units = min(percent, UNITS_PER_DEVICE)
        free = self.free(name)
        fitting = [
            gpu
            for gpu in self.told[name].inventory.devices
            if gpu.healthy
            and (not said.models or gpu.model == said.models)
            and free[gpu.id][0] >= units
            and max(0, free[gpu.id][1]) >= memory_cap_mib(said.memory_mib, gpu.memory_mib, units)
            and (not together or (name, gpu.id) in together)
            and there is not None
            and (gpu.id not in there.use or set(there.use[gpu.id].exclusions) == {said.exclusion})
        ]
        return len(fitting) >= max(1, percent // UNITS_PER_DEVICE)

    @invariant()
    def the_ledger_is_what_was_said(self) -> None:
        ledger = self.assigner.books.ledger
        for name, node in self.told.items():
            there = ledger.node(name)
            for device_id, free in self.free(name).items():
                assert there is not None
                assert there.free(next(gpu for gpu in node.inventory.devices if gpu.id == device_id)) == free

    @invariant()
    def labels_of_all_that_is_bound_count(self) -> None:
        ledger = self.assigner.books.ledger
        for name in self.told:
            there = ledger.node(name)
            for uid, take in self.account(name):
                said = self.assumed[uid][0] if uid in self.assumed else self.bound.get(uid)
                if said is not None and said.node == name and not said.pod.fault:
                    assert there is not None
                    assert said.exclusion in there.use[take.device_id].exclusions
                    assert not said.affinity or (name, take.device_id) in ledger.together(f"d/{said.affinity}")

    @invariant()
    def those_are_flagged_that_have_something_else_than_they_say(self) -> None:
        books = self.assigner.books
        assert books.flagged.keys() <= self.bound.keys()
        assert set(books.faults) == {name for name, node in self.told.items() if node.fault}
        for uid, said in self.bound.items():
            if said.takes({}) is None:
                assert uid in books.flagged
            assert books.flagged.get(uid, "").isprintable()

    def teardown(self) -> None:
        self.assigner.pods_listed([])
        for uid in self.assumed:
            self.assigner.books.ledger.release(uid)
        self.assigner.nodes_listed([])
        books = self.assigner.books
        assert list(books.ledger) == []
        assert (books.pods, books.flagged, books.faults) == (0, {}, {})
        assert all(not books.pods_on(name) for name in NODES)
        assert not books.ledger.together("d/a")


TestEverything = Everything.TestCase
TestEverything.settings = settings(max_examples=examples(100), stateful_step_count=40, deadline=None)
