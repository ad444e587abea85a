"""Whether a client may queue work far ahead: only where no rival may come soon."""

from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_S as S
from edgeshare.contract.units import NS_PER_US as US
from sharemgr.node.turns.commands import Contend, Grant
from sharemgr.node.turns.settings import Share
from tests.kit.arbiter.device import device


def test_the_queue_is_uncapped_only_after_a_rival_has_been_away_for_long() -> None:
    arbiter = device(a=50, b=50)
    arbiter.request("b", 1, 0)
    arbiter.release("b", 1, 1, MS, False, MS)
    arbiter.tick(MS + 300 * US)  # it sleeps
    arbiter.request("a", 1, 2 * MS)
    assert arbiter.deadline_ns() == S + MS + 300 * US
    assert arbiter.tick(S) == []
    assert arbiter.tick(S + MS + 300 * US) == [Contend("a", 2, False)]
    assert arbiter.deadline_ns() is None


def test_the_queue_stays_capped_while_one_of_the_latency_class_may_come() -> None:
    arbiter = device(a=Share(30, 100, latency=True), b=70)
    assert arbiter.request("b", 1, 0) == [Grant("b", 1, True)]
    assert arbiter.deadline_ns() is None
    assert arbiter.gone("a", 1, 10 * S) == [Contend("b", 1, False)]
    assert arbiter.join("a", 2, 11 * S) == [Contend("b", 1, True)]
