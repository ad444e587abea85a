"""What an allocation has had of a device, for those who ask."""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from sharemgr.node.turns.contender import Contender
from sharemgr.node.turns.phases import DRAINING, ENDING, HOLDING, IDLE, OVERLAPPING, THINKING, THROTTLED, WAITING, Phase


class State(Enum):
    """What an allocation does, as its users are told."""

    IDLE = "idle"
    WAITING = "waiting"
    HOLDING = "holding"
    DRAINING = "draining"


STATES = {
    IDLE: State.IDLE,
    THINKING: State.IDLE,
    THROTTLED: State.WAITING,
    WAITING: State.WAITING,
    HOLDING: State.HOLDING,
    DRAINING: State.DRAINING,
    ENDING: State.DRAINING,
    OVERLAPPING: State.DRAINING,
}


@dataclass(frozen=True, slots=True)
class Account:
    """What an allocation has had of the device; sums are of the last `window_ns` of the settings, or where they say so
    of all the time since it was added."""

    state: State
    overlapping: bool
    """It did not drain in time; another may hold the device now."""
    throttled: bool
    """It waits because it is over its limit."""
    held_ns: int
    gpu_ns: int
    waited_ns: int
    """In all of the window, the present wait included."""
    all_held_ns: int
    all_gpu_ns: int
    all_waited_ns: int
    """In all the time since it was added. Each may be told somewhat smaller than before: a wait is over as of when the
    device fell free, which is known later."""
    waiting_ns: int
    """How long it has been waiting now."""
    longest_wait_ns: int
    grants: int
    """Since it was added."""
    overruns: int
    """Drains that were not waited for to their end, since it was added."""
    holding_ns: int
    """How long it has had the device now, its drain included; 0 while it has not."""
    beside: bool
    """Others may be let in beside it, as its pages are believed; what it held is then what it was charged with."""
    usual_part: float
    """Of the device, what it uses as a rule while it may as it likes; 0 where it is turns."""
    lag_ns: int
    """Held time that it is behind (above 0) or ahead of (below 0) its part, while it competes; 0 otherwise."""


def account_of(contender: Contender, beside: bool, lag_ns: int, now_ns: int) -> Account:
    """The account of one that was settled until now; ``beside``: others may be let in beside it."""
    sums = contender.window.sums(now_ns)
    waiting_ns = contender.waiting_ns(now_ns)
    return Account(
        state=STATES[contender.phase],
        overlapping=contender.phase is OVERLAPPING,
        throttled=contender.phase is THROTTLED,
        held_ns=sums.held_ns,
        gpu_ns=sums.gpu_ns,
        waited_ns=sums.waited_ns + contender.window.inside_ns(waiting_ns),
        all_held_ns=contender.window.held.all_ns,
        all_gpu_ns=contender.window.gpu.all_ns,
        all_waited_ns=contender.window.waited.all_ns + waiting_ns,
        waiting_ns=waiting_ns,
        longest_wait_ns=max(sums.longest_wait_ns, waiting_ns),
        grants=contender.grants,
        overruns=contender.overruns,
        # A grant may be of a time to come.
        holding_ns=max(0, now_ns - contender.granted_ns) if contender.open_clients else 0,
        beside=beside and not contender.gate.suspect,
        usual_part=contender.gate.demand.usual if beside and not contender.gate.suspect else 0,
        lag_ns=lag_ns,
    )


@dataclass(frozen=True, slots=True)
class Moment:
    """Where an allocation stands after an event, for those who follow its turns."""

    phase: Phase
    beside: bool
    grants: int
    number: int
    """Of the last grant, as it was granted."""
    begins_at_ns: int
    """When that begins, which may be to come."""


def moment_of(contender: Contender, beside: bool, before: Moment | None) -> Moment:
    """Where it stands; the very object ``before`` where that is as it was."""
    number = contender.number
    if before is not None and before.grants == contender.grants:
        # A client that comes in later makes a new number, and no new grant.
        number = before.number
        if before.phase is contender.phase and before.beside == beside and before.begins_at_ns == contender.granted_ns:
            return before
    return Moment(contender.phase, beside, contender.grants, number, contender.granted_ns)


class Reader(Protocol):
    """Somebody who follows the turns."""

    told: dict[str, Moment]
    """By allocation: what it was told last."""

    def take(self, allocation_id: str, moment: Moment | None, at_ns: int) -> None:
        """Where an allocation stands from then on; None: it is removed."""
