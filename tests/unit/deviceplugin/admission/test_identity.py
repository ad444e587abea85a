import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from deviceplugin.admission.identity import Identity
from deviceplugin.allocations.lifetimes import SETTLE_S, Lifetimes
from deviceplugin.allocations.manager_client import Manager
from deviceplugin.pods.podresources import InFlight, Listings
from deviceplugin.units.ledger import Allocation, Ledger
from edgeshare.contract.accelerator_kind import GPU
from edgeshare.kubelet.podresources import PodResources


class ToldTime(asyncio.SelectorEventLoop):
    """An event loop on which it is as late as the test says."""

    now_s = 1000.0

    def time(self) -> float:
        return self.now_s


@pytest.fixture
def loop() -> Iterator[ToldTime]:
    loop = ToldTime()
    yield loop
    loop.close()


def test_with_no_api_server_units_are_nobodys_once_the_kubelet_has_had_time_to_list_them(loop: ToldTime) -> None:
    in_flight = InFlight()
    listings = Listings(PodResources(Path("nobody.sock"), GPU.resource), in_flight)
    lifetimes = Lifetimes(None, None, Manager(Path("nowhere")))
    identity = Identity(listings, Ledger(), None, "", None, GPU, lifetimes)
    allocation = Allocation("gpu-1", frozenset({"GPU-a::00"}), "")

    async def allocate() -> None:
        with in_flight.allocating():
            pass

    async def register() -> None:
        lifetimes.kubelet_started()

    def is_nobodys() -> bool:
        return loop.run_until_complete(identity.is_nobodys(allocation, {}))

    # What an older plugin handed out may be what no kubelet that is there knows yet.
    assert not is_nobodys()
    for happens in (register, allocate):
        loop.run_until_complete(happens())
        loop.now_s += SETTLE_S - 1
        assert not is_nobodys()
        loop.now_s += 1
        assert is_nobodys()
