"""How many pages of clients are read where one of them leaves gaps: those of all before each event, as far as a node
can afford that."""

from collections.abc import Iterator

import pytest

from edgeshare.contract.units import NS_PER_MS, NS_PER_S, UNITS_PER_DEVICE
from sharemgr.node.clients.budget import PAGES_PER_S, Budget, Part, pages_of_a_node
from sharemgr.node.clients.device import DeviceArbiter
from sharemgr.node.sockets.loop import Loop
from sharemgr.node.turns.demand import Use
from sharemgr.node.turns.gate import Rule
from sharemgr.node.turns.settings import Settings, Share
from sharemgr.node.turns.slices.ends import Ends
from tests.kit.arbiter.silent_gates import SilentGates

BEGIN_NS = NS_PER_S
UNBOUNDED = Part(*[Budget(NS_PER_S, NS_PER_S)] * 3)


class Thinkers(SilentGates):
    """So many clients, which use a tenth of the time."""

    part = 10

    def __init__(self, clients: int) -> None:
        self._clients = clients
        self._used_at_ns = 0
        self.read = 0
        """How often their pages were."""

    def used(self, now_ns: int, charges: bool) -> Use:
        self.read += 1
        elapsed_ns, self._used_at_ns = now_ns - self._used_at_ns, now_ns
        gpu_ns = elapsed_ns // self.part
        return Use(gpu_ns=gpu_ns, idle_ns=elapsed_ns - gpu_ns, pages=self._clients)


class Busy(Thinkers):
    """So many, which leave no gap: turns are all that there is for them."""

    part = 1


class Device:
    """A device of some allocations of so many clients each."""

    def __init__(self, loop: Loop, pages: Part, *clients: int, kind: type[Thinkers] = Thinkers) -> None:
        self.all = [kind(each) for each in clients]
        self._clients = clients
        self.arbiter = DeviceArbiter(loop, Settings(), Ends(), Rule(), [], pages)
        for index, gates in enumerate(self.all):
            self.arbiter.add(str(index), Share(UNITS_PER_DEVICE // len(clients), 100), gates, 0)
            self.arbiter.join(str(index), 1, True, 0)
        # What they do is seen for long enough.
        self.arbiter.see(0, None, BEGIN_NS, lambda: BEGIN_NS)
        for gates in self.all:
            gates.read = 0

    @property
    def pages(self) -> int:
        """How many were read."""
        return sum(gates.read * clients for gates, clients in zip(self.all, self._clients, strict=True))


@pytest.fixture
def loop() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    loop.close()


def flood(device: Device, events: int) -> None:
    """So many requests within a second, of all in turn."""
    for event in range(events):
        device.arbiter.request(str(event % len(device.all)), 1, BEGIN_NS + (event + 1) * NS_PER_S // events)


def test_before_each_event_what_all_have_used_is_read(loop: Loop) -> None:
    device, free = Device(loop, pages_of_a_node().part(UNITS_PER_DEVICE, 1), 1, 1, 6), Device(loop, UNBOUNDED, 1, 1, 6)
    for each in (device, free):
        flood(each, 4500)
        each.arbiter.close()
    assert [gates.read for gates in device.all] == [gates.read for gates in free.all]
    # But for those that are kept out, and have nothing queued.
    assert min(gates.read for gates in device.all) > 4000


def test_of_very_many_clients_it_is_read_as_often_as_a_node_can_afford(loop: Loop) -> None:
    device = Device(loop, pages_of_a_node().part(UNITS_PER_DEVICE, 1), 1, *[64] * 10)
    flood(device, 2200)
    assert device.pages <= PAGES_PER_S * 5 // 4 + 641
    # Where everybody stands is known more than a hundred times a second all the same.
    assert all(gates.read > 100 for gates in device.all)
    device.arbiter.close()


def test_of_who_takes_turns_one_alone_is_read_as_often_as_a_node_can_afford(loop: Loop) -> None:
    device = Device(loop, pages_of_a_node().part(UNITS_PER_DEVICE, 1), 1, *[64] * 10, kind=Busy)
    flood(device, 5500)
    one, *many = device.all
    assert one.read == 500
    assert device.pages <= PAGES_PER_S * 5 // 8 + 11 * 64 + one.read
    assert all(gates.read > 30 for gates in many)
    device.arbiter.close()


def test_while_pages_cannot_be_read_nothing_is_due(loop: Loop) -> None:
    device = Device(loop, pages_of_a_node().part(UNITS_PER_DEVICE, 1), 1, *[64] * 10)
    flood(device, 2200)
    timer = device.arbiter.timer
    for step in range(400):
        now_ns = BEGIN_NS + NS_PER_S + step * NS_PER_MS // 10
        timer._armed_ns = None  # it has fired
        device.arbiter._tick(now_ns)
        assert timer._armed_ns is None or timer._armed_ns > now_ns
    device.arbiter.close()


def test_one_devices_crowd_keeps_no_other_from_reading(loop: Loop) -> None:
    node = pages_of_a_node()
    crowd = Device(loop, node.part(UNITS_PER_DEVICE, 2), 1, *[64] * 10)
    honest = Device(loop, node.part(UNITS_PER_DEVICE, 2), 1, 3)
    free = Device(loop, UNBOUNDED, 1, 3)
    flood(crowd, 2200)
    for device in (honest, free):
        flood(device, 4500)
    assert [gates.read for gates in honest.all] == [gates.read for gates in free.all]
    for device in (crowd, honest, free):
        device.arbiter.close()
