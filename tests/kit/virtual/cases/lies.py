"""What a client's page may say instead of the truth. Pure; times in ns."""

from collections.abc import Callable
from dataclasses import dataclass

from edgeshare.contract.units import NS_PER_MS, NS_PER_S

HOUR_NS = 3600 * NS_PER_S
BURSTS_NS, HIDDEN_NS = 4 * NS_PER_S, 2 * NS_PER_S
"""Of one that lies now and then: how long it takes until it does again, and for how much of that it does."""
BACK_NS = 50 * NS_PER_MS


def _always(_: int) -> float:
    return 1.0


def _never(_: int) -> int:
    return 0


@dataclass(frozen=True)
class Lie:
    """What is said instead of the truth."""

    part: Callable[[int], float] = _always
    """At a time: of the GPU time that went by, what is said; the rest is said to have been idle."""
    more_ns: Callable[[int], int] = _never
    """At a time: what is added to that."""
    moves: bool = True
    """Whether there is anything in the page at all."""


LIES = {
    "a twentieth": Lie(part=lambda _: 0.05),
    "nothing": Lie(part=lambda _: 0.0),
    "half": Lie(part=lambda _: 0.5),
    "light in bursts": Lie(part=lambda now_ns: 0.05 if now_ns % BURSTS_NS < HIDDEN_NS else 1.0),
    "goes back": Lie(more_ns=lambda now_ns: -BACK_NS * (now_ns // BACK_NS % 2)),
    "jumps": Lie(more_ns=lambda now_ns: HOUR_NS * (now_ns // BURSTS_NS)),
    "never moves": Lie(moves=False),
}
