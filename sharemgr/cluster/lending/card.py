"""What a lending policy sees of a GPU, and what it answers.

Nothing here knows what a pod will need: only what was asked for, what was promised, and what samples showed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from sharemgr.cluster.state.profiles import Profile

CONTEXT_MIB = 400
"""A bare CUDA context takes less: 255 to 330 MiB on the cards of docs/guarantees/memory.md. Use below it says nothing
yet."""
SAME = 0.02
"""Samples that differ by no more than this part are of one level."""
GAP_MAX_S = 20.0
"""Between two samples, else nothing is known of the time between: card memory is scraped each 6 to 15 s."""
NO_SAMPLE_S = 120.0
"""After so long without a sample there is no source of them: four times the longest that one is expected to be late."""
SAMPLES_MAX = 600
"""How many are kept of one pod or card: more than an hour of them."""


class Sample(NamedTuple):
    """Memory in use."""

    at_s: float
    used_mib: float
    gpu_id: str = ""


@dataclass(slots=True)
class Use:
    """The samples of one pod, or of a card, and what follows from them."""

    gpu_id: str
    since_s: float
    """Older samples are of somebody else, or of an earlier run."""
    most_mib: int
    """What can be in use at most; a sample above it is absurd."""
    samples: list[Sample] = field(default_factory=list)
    seen_mib: int = 0
    """The most."""
    level_mib: float = 0.0
    """Of the last samples."""
    level_since_s: float = inf
    """The first of the samples since which all are within 2 % of that one, without a gap."""
    refused: int = 0
    """Samples that cannot be, or came too late."""

    def see(self, sample: Sample, now_s: float) -> bool:
        """Takes in a sample; what is absurd, of another card, of the future, or older than the last is not."""
        at_s, used_mib, gpu_id = sample
        told_at_s = self.told_at_s
        if told_at_s > now_s:
            # The clock went back: what was told before has no place in time any more. What was seen remains seen.
            self.samples.clear()
            told_at_s = self.since_s = min(self.since_s, at_s)
            self.level_since_s = inf
        # Whatever is no number is not between two.
        if not 0 <= used_mib <= self.most_mib or gpu_id != self.gpu_id or not told_at_s <= at_s <= now_s:
            self.refused += 1
            return False
        is_level = abs(used_mib - self.level_mib) <= SAME * self.level_mib
        if not is_level or self.level_since_s == inf or at_s - told_at_s > GAP_MAX_S:
            self.level_mib, self.level_since_s = used_mib, at_s
        self.samples.append(sample)
        if len(self.samples) > SAMPLES_MAX:
            del self.samples[: SAMPLES_MAX // 2]
        self.seen_mib = max(self.seen_mib, round(used_mib))
        return True

    @property
    def told_at_s(self) -> float:
        """When the last sample was taken; where there is none, since when one waits for them."""
        return self.samples[-1].at_s if self.samples else self.since_s

    @property
    def flat_s(self) -> float:
        """How long it has been of one level, above a bare context, by the last sample."""
        if not self.samples or self.level_mib <= CONTEXT_MIB:
            return 0.0
        return self.samples[-1].at_s - self.level_since_s

    def is_untold(self, now_s: float) -> bool:
        """Whether there is no source of samples, or one whose clock is not ours."""
        return not 0 <= now_s - self.told_at_s <= NO_SAMPLE_S


@dataclass(slots=True)
class Asked:
    """What a pod asks of a GPU."""

    guarantee_mib: int
    """It can always have this; of all pods together never more than there is."""
    limit_mib: int
    """It never gets more; what lies between is borrowed."""
    key: str
    """Of its program's profile."""


@dataclass(slots=True)
class Resident:
    """A pod on the GPU."""

    asked: Asked
    bound_at_s: float
    promised_mib: int
    use: Use


@dataclass(slots=True)
class Card:
    """A GPU."""

    usable_mib: int
    """For pods: what contexts, modules and others take is not in it."""
    use: Use
    residents: list[Resident] = field(default_factory=list)
    last_bound_at_s: float = -inf
    """When a pod was last bound to it, whether it is still there or not."""

    @property
    def guaranteed_mib(self) -> int:
        """To all of its pods."""
        return sum(resident.asked.guarantee_mib for resident in self.residents)


class Room(NamedTuple):
    """What a policy would promise on a GPU."""

    mib: float
    reason: str
    until_s: float = inf
    """It is the same until then, unless a sample comes, or a pod comes or goes."""


Profiled = Mapping[str, Profile]
"""Key → profile, on the model of the GPU that is asked about."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How much memory of a GPU is lent: two functions."""

    room: Callable[[Card, Profiled, float], Room]
    """Of the GPU, the profiles, and the time in seconds."""
    charge: Callable[[Asked, Card, Profiled, float], tuple[int, str]]
    """How much of that room a pod that asks takes, MiB, which is what it is promised; and why so much."""
    needs_samples: bool = True
    """Whether it goes by what is in use."""
    patience_s: float = inf
    """A pod that has waited so long holds back those behind it in the queue."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What a pod is promised."""

    promised_mib: int | None
    """None: it does not come here now."""
    reason: str
    until_s: float = inf
    """As in Room."""


def decide(
    policy: Policy, card: Card, profiles: Profiled, asked: Asked, now_s: float, room: Room | None = None
) -> Decision:
    """What the pod is promised on that GPU; ``room`` is what the policy says of it now, where that is known already.

    A guarantee is never over-committed, whatever the policy. Who borrows nothing asks no policy. Without samples
    nothing is lent by a policy that needs them.
    """
    left_mib = card.usable_mib - card.guaranteed_mib
    if asked.guarantee_mib > left_mib:
        return Decision(
            None, f"guarantee of {asked.guarantee_mib} MiB, of which {left_mib} are not guaranteed to others"
        )
    if asked.guarantee_mib >= asked.limit_mib:
        return Decision(asked.guarantee_mib, "guaranteed")
    if policy.needs_samples and card.use.is_untold(now_s):
        return Decision(asked.guarantee_mib, "no samples of what is in use: guarantees alone")
    room = room or policy.room(card, profiles, now_s)
    charge_mib, why = policy.charge(asked, card, profiles, now_s)
    until_s = min(room.until_s, card.use.told_at_s + NO_SAMPLE_S if policy.needs_samples else inf)
    if charge_mib <= room.mib:
        return Decision(charge_mib, f"{why}; {room.reason}")
    return Decision(None, f"{charge_mib} MiB ({why}), of which {room.mib:.0f} are free ({room.reason})", until_s)


def by_limit(asked: Asked, card: Card, profiles: Profiled, now_s: float) -> tuple[int, str]:
    """Charge: all that it may come to use."""
    return asked.limit_mib, "its limit"
