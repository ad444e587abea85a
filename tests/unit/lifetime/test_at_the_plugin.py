"""The plugin's store goes every way of an allocation that its table has, and no other: whatever happens is tried from
each state."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from deviceplugin.allocations.records import Records
from deviceplugin.allocations.store import Store
from deviceplugin.devices.device_list import Devices
from deviceplugin.inject.cdi import Specs
from deviceplugin.inject.library import Library
from deviceplugin.live_config import Settings
from deviceplugin.node_events import NodeEvents
from deviceplugin.units.ledger import Allocation, Ledger, Owner, Terms
from deviceplugin.units.owners import attach_owners
from edgeshare.contract.accelerator_kind import GPU
from edgeshare.contract.lifetime import ABSENT, AT_THE_PLUGIN, ENDING, SERVED, State

UNITS = frozenset({"GPU-a::00", "GPU-a::01"})
TERMS = Terms(request_percent=2)


class Bed:
    """A store in a folder, and the one allocation that it ever minted."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "hook.so").write_bytes(b"a library")
        self._id = "gpu-of-the-manager"
        self.store = self._begun()

    def _begun(self) -> Store:
        file = self._folder / "deviceplugin.yaml"
        file.write_text("{}")
        ledgers = {GPU: Ledger()}
        settings = Settings(file)
        library = Library(self._folder / "hook", self._folder / "hook.so")
        library.install()
        specs = Specs(self._folder / "cdi", settings, Devices(), ledgers.values(), NodeEvents())
        store = Store(GPU, ledgers, Records(self._folder / "records"), library, self._folder / "run", settings, specs)
        store.load()
        return store

    def state(self) -> State:
        return self.store.state(self._id)

    def _there(self) -> Iterable[Allocation]:
        return tuple(self.store.ledger)

    def allocate(self) -> None:
        if self.state() is ABSENT:
            self._id = self.store.mint(UNITS).id

    def list_a_container(self, name: str = "main") -> None:
        for changed in attach_owners(self._there(), {("team", "trainer"): {name: UNITS}}):
            self.store.put(changed)

    def list_another_container(self) -> None:
        self.list_a_container("sidecar")

    def start(self) -> None:
        for each in self._there():
            owner = each.owner or Owner("team", "trainer", "main", "uid-1")
            self.store.put(replace(each, owner=owner, terms=TERMS))

    def learn_of_it_from_the_manager(self) -> None:
        if self.state() is ABSENT:
            owner = Owner("team", "trainer", "main", "uid-1")
            self.store.put(Allocation(self._id, UNITS, "", owner=owner, terms=TERMS))

    def learn_that_it_has_ended_from_the_manager(self) -> None:
        if self.state() is ABSENT:
            self.store.leaving.add(self._id)

    def drop(self) -> None:
        for each in self._there():
            self.store.drop(each)

    def tell_the_manager(self) -> None:
        for allocation_id in sorted(self.store.leaving):
            self.store.gone(allocation_id)


Call = Callable[[Bed], None]
CALLS: tuple[Call, ...] = (
    Bed.allocate,
    Bed.list_a_container,
    Bed.list_another_container,
    Bed.start,
    Bed.learn_of_it_from_the_manager,
    Bed.learn_that_it_has_ended_from_the_manager,
    Bed.drop,
    Bed.tell_the_manager,
)


def after(calls: tuple[Call, ...]) -> State:
    """The state after these calls; what is kept on disk says the same to a plugin that starts."""
    with TemporaryDirectory() as folder:
        bed = Bed(Path(folder))
        for call in calls:
            call(bed)
        state = bed.state()
        bed.store = bed._begun()
        # What was taken back, the next plugin learns of from the manager.
        assert bed.state() is (ABSENT if state is ENDING else state), calls
        return state


def test_every_way_of_the_table_is_gone_and_no_other() -> None:
    found: set[tuple[State, State]] = set()
    to: dict[State, tuple[Call, ...]] = {ABSENT: ()}
    untried = [ABSENT]
    while untried:
        before = untried.pop()
        for call in CALLS:
            state = after((*to[before], call))
            if state is not before:
                found.add((before, state))
            if state not in to:
                to[state] = (*to[before], call)
                untried.append(state)
    assert found == set(AT_THE_PLUGIN)


def test_one_that_another_container_is_listed_with_starts_by_what_that_one_asks() -> None:
    served = (Bed.allocate, Bed.list_a_container, Bed.start)
    assert after(served) is SERVED
    assert after((*served, Bed.list_a_container)) is SERVED
    assert after((*served, Bed.list_another_container)) is State.OWNED
