"""An allocation that is removed leaves nothing behind."""

import pytest

from edgeshare.contract.errors import NotFound
from edgeshare.contract.units import NS_PER_MS as MS
from sharemgr.node.turns.arbiter import Arbiter
from sharemgr.node.turns.commands import Grant, Revoke
from sharemgr.node.turns.settings import Share


@pytest.fixture
def arbiter() -> Arbiter:
    """Of a device with two allocations, each with client 1."""
    arbiter = Arbiter(None)
    for name in ("a", "b"):
        arbiter.add(name, Share(50, 100), 0)
        arbiter.join(name, 1, 0)
    return arbiter


def test_a_removed_holder_is_revoked_and_its_device_given_on(arbiter: Arbiter) -> None:
    arbiter.request("a", 1, 0)
    arbiter.request("b", 1, 0)
    assert arbiter.remove("a", MS) == [Revoke("a", 1), Grant("b", 2, False)]
    with pytest.raises(NotFound):
        arbiter.account("a", MS)
    assert arbiter.add("a", Share(50, 100), 2 * MS) == []


def test_a_removed_holder_is_revoked_once_whatever_its_clients_have_asked_for(arbiter: Arbiter) -> None:
    arbiter.join("a", 2, 0)
    for number in (1, 2):
        assert arbiter.request("a", number, 0) == [Grant("a", number, False)]
    for number in (1, 2):
        assert arbiter.release("a", number, number, 0, False, MS) == []
    # Both are let in; the second has asked for nothing.
    assert arbiter.request("a", 1, 2 * MS) == [Grant("a", 3, False)]
    arbiter.request("b", 1, 2 * MS)
    assert arbiter.remove("a", 3 * MS) == [Revoke("a", 3), Grant("b", 4, False)]
