"""The phases of an allocation on one device, and every way from one to another, by exclusive turns (``slices``) and by
gates that are open beside each other (``beside``) alike."""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType


class Phase(Enum):
    """Where an allocation is between asking for a slice and having drained."""

    IDLE = "idle"
    """No work; does not compete."""
    THROTTLED = "throttled"
    """Has work, but is over its limit; does not compete."""
    THINKING = "thinking"
    """Drained a moment ago and is expected back; competes."""
    WAITING = "waiting"
    """Has work; competes."""
    HOLDING = "holding"
    """Its gates are open."""
    DRAINING = "draining"
    """Revoked; what its clients queued still runs."""
    ENDING = "ending"
    """Revoked and about to drain; the next one is granted already."""
    OVERLAPPING = "overlapping"
    """Revoked, not drained in time and no longer waited for."""


# Python 3.11 takes 0.1 µs to find a member through its class; a hand-over does that twenty times.
IDLE, THROTTLED, THINKING, WAITING, HOLDING, DRAINING, ENDING, OVERLAPPING = Phase

TRANSITIONS: Mapping[tuple[Phase, Phase], str] = MappingProxyType(
    {
        (IDLE, WAITING): "a launch waits at its gate",
        (IDLE, THROTTLED): "a launch waits at its gate, and it is over its limit",
        (THROTTLED, WAITING): "its limit lets it have more",
        (THROTTLED, HOLDING): "beside others, its limit lets it have more and the rule lets it in",
        (THROTTLED, IDLE): "whoever waited is gone; or turns begin, and its place is found anew",
        (THINKING, WAITING): "it is back with work",
        (THINKING, THROTTLED): "it is back with work, and its limit was lowered meanwhile",
        (THINKING, IDLE): "it was not back in time, or is gone",
        (WAITING, HOLDING): "it is next, and its gates are opened",
        (WAITING, THROTTLED): "beside others, it is over its limit",
        (WAITING, IDLE): "whoever waited is gone; or turns begin, and its place is found anew",
        (HOLDING, DRAINING): "its grant is called back",
        (HOLDING, WAITING): "it drained by itself and has work again",
        (HOLDING, THROTTLED): "it drained by itself, has work again, and is over its limit",
        (HOLDING, THINKING): "it drained by itself, and will be back in a moment",
        (HOLDING, IDLE): "it drained by itself and has no work",
        (DRAINING, ENDING): "it says when it will have drained, and the next one is granted for then",
        (DRAINING, OVERLAPPING): "its drain took too long, or its processes are stopped",
        (DRAINING, WAITING): "it has drained, and has work",
        (DRAINING, THROTTLED): "it has drained, has work, and is over its limit",
        (DRAINING, THINKING): "it has drained, and will be back in a moment",
        (DRAINING, IDLE): "it has drained and has no work",
        (ENDING, DRAINING): "several are let in while it drains",
        (ENDING, OVERLAPPING): "its drain took longer than it said, or its processes are stopped",
        (ENDING, WAITING): "it has drained, and has work",
        (ENDING, THROTTLED): "it has drained, has work, and is over its limit",
        (ENDING, THINKING): "it has drained, and will be back in a moment",
        (ENDING, IDLE): "it has drained and has no work",
        (OVERLAPPING, WAITING): "it has drained at last, or a launch waits that its drain may be waiting for",
        (OVERLAPPING, THROTTLED): "it has drained at last, or a launch waits, and it is over its limit",
        (OVERLAPPING, THINKING): "it has drained at last, and will be back in a moment",
        (OVERLAPPING, IDLE): "it has drained at last and has no work, or is gone",
    }
)
"""From, to → when. Tests hold the code to it in both directions: nothing goes another way, and each way is gone."""
