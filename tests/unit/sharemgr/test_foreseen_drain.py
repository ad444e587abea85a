"""A holder that says when it will have drained: the next is granted just before, and charged from then on."""

import pytest

from edgeshare.units import NS_PER_MS as MS
from edgeshare.units import NS_PER_US as US
from sharemgr.node.arbiter import Arbiter, Grant, Prolong, Revoke, Settings, Share, State


def draining(a: int = 50, b: int = 50) -> Arbiter:
    """a was called back at 5 ms under grant 1; b waits."""
    arbiter = Arbiter()
    for name, percent in {"a": a, "b": b}.items():
        arbiter.add(name, Share(percent, 100), 0)
        arbiter.join(name, 1, 0)
        arbiter.request(name, 1, 0)
    assert arbiter.tick(5 * MS) == [Revoke("a", 1)]
    return arbiter


def test_the_next_is_granted_when_the_drain_was_foreseen() -> None:
    arbiter = draining()
    assert arbiter.draining("a", 1, 1, 6 * MS, 0, 5 * MS + 50 * US) == []
    assert arbiter.deadline_ns() == 6 * MS
    assert arbiter.tick(6 * MS) == [Grant("b", 2, True)]
    assert arbiter.account("a", 6 * MS).state is State.DRAINING
    assert arbiter.release("a", 1, 1, 5 * MS, True, 6 * MS + 30 * US) == []
    assert arbiter.account("a", 6 * MS + 30 * US).state is State.WAITING


def test_the_lead_is_what_the_next_one_takes_to_launch_and_what_ticks_are_late() -> None:
    arbiter = draining()
    arbiter.draining("a", 1, 1, 6 * MS, 80 * US, 5 * MS)
    assert arbiter.deadline_ns() == 6 * MS
    assert arbiter.tick(6 * MS + 40 * US) == [Grant("b", 2, True)]
    arbiter.release("a", 1, 1, 5 * MS, True, 6 * MS + 50 * US)
    # b has had less than a when its first slice ends, so it gets a second one at once.
    assert arbiter.tick(12 * MS) == [Prolong("b", 2)]
    assert arbiter.tick(18 * MS) == [Revoke("b", 2)]
    arbiter.draining("b", 1, 2, 19 * MS, 0, 18 * MS)
    # Half of what a said of its launches is believed, and a quarter of how late the one tick was.
    assert arbiter.deadline_ns() == 19 * MS - 40 * US - 10 * US


def test_the_lead_has_a_bound() -> None:
    arbiter = draining()
    for _ in range(40):
        arbiter.draining("a", 1, 1, 6 * MS, 10**15, 5 * MS)
    arbiter.release("a", 1, 1, 5 * MS, True, 6 * MS)
    arbiter.tick(12 * MS)
    assert arbiter.tick(18 * MS) == [Revoke("b", 2)]
    arbiter.draining("b", 1, 2, 19 * MS, 0, 18 * MS)
    assert arbiter.deadline_ns() == pytest.approx(19 * MS - Settings().lead_most_ns, abs=100)


def test_until_the_drain_the_device_is_charged_to_who_drains() -> None:
    arbiter = draining()
    arbiter.draining("a", 1, 1, 5 * MS + 100 * US, 0, 5 * MS)
    arbiter.tick(5 * MS + 100 * US)
    arbiter.release("a", 1, 1, 5 * MS, True, 7 * MS)
    arbiter.tick(11 * MS)
    assert arbiter.account("a", 11 * MS).held_ns == 7 * MS
    assert arbiter.account("b", 11 * MS).held_ns == 4 * MS


def test_a_drain_that_never_comes_is_given_up_after_its_lease() -> None:
    arbiter = draining()
    arbiter.draining("a", 1, 1, 6 * MS, 0, 5 * MS)
    assert arbiter.tick(6 * MS) == [Grant("b", 2, True)]
    lease_end_ns = 5 * MS + Settings().queue_cap_ns + Settings().drain_grace_ns
    assert not arbiter.account("a", lease_end_ns - 1).overlapping
    arbiter.tick(lease_end_ns)
    assert arbiter.account("a", lease_end_ns).overlapping
    assert arbiter.account("b", lease_end_ns).state is State.HOLDING


def test_with_several_clients_the_last_one_counts() -> None:
    arbiter = Arbiter()
    for name in ("a", "b"):
        arbiter.add(name, Share(50, 100), 0)
    for client in (1, 2):
        arbiter.join("a", client, 0)
        arbiter.request("a", client, 0)
    arbiter.join("b", 1, 0)
    arbiter.request("b", 1, 0)
    revoked = arbiter.tick(5 * MS)
    assert [type(command) for command in revoked] == [Revoke]
    number = revoked[0].number
    arbiter.draining("a", 1, number, 6 * MS, 0, 5 * MS)
    assert arbiter.tick(6 * MS) == []
    arbiter.draining("a", 2, number, 7 * MS, 0, 6 * MS)
    assert arbiter.deadline_ns() == 7 * MS
    assert [type(command) for command in arbiter.tick(7 * MS)] == [Grant]


@pytest.mark.parametrize("number", [0, 2, -1, 1 << 40])
def test_a_stale_foretelling_changes_nothing(number: int) -> None:
    arbiter = draining()
    before = arbiter.deadline_ns()
    assert arbiter.draining("a", 1, number, 6 * MS, 0, 5 * MS) == []
    assert arbiter.draining("nobody", 1, 1, 6 * MS, 0, 5 * MS) == []
    assert arbiter.draining("a", 7, 1, 6 * MS, 0, 5 * MS) == []
    assert arbiter.deadline_ns() == before


def test_a_holder_that_dies_while_the_next_is_granted_leaves_the_device_to_it() -> None:
    arbiter = draining()
    arbiter.draining("a", 1, 1, 6 * MS, 0, 5 * MS)
    arbiter.tick(6 * MS)
    assert arbiter.gone("a", 1, 6 * MS + 1) == []
    assert arbiter.account("a", 7 * MS).state is State.IDLE
    assert arbiter.account("b", 7 * MS).held_ns == MS - 1


@pytest.mark.parametrize("late_ns", [0, MS, 3 * MS])
def test_the_next_ones_gpu_time_counts_from_the_foreseen_end_however_late_that_is_heard_of(late_ns: int) -> None:
    arbiter = draining()
    arbiter.draining("a", 1, 1, 6 * MS, 0, 5 * MS)
    assert arbiter.tick(6 * MS) == [Grant("b", 2, True)]
    arbiter.release("a", 1, 1, 6 * MS, True, 6 * MS + late_ns)
    arbiter.release("b", 1, 2, 5 * MS, False, 11 * MS)
    assert arbiter.account("b", 11 * MS).gpu_ns == 5 * MS
    assert arbiter.account("b", 11 * MS).held_ns == 5 * MS - late_ns
