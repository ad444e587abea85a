"""What an allocation wants of a device, by what its clients' pages say; and how a device is divided by that."""

from dataclasses import dataclass
from math import exp

from edgeshare.contract.units import NS_PER_MS, NS_PER_S

RECENT_NS = 20 * NS_PER_MS
"""Four slices: what it does now."""
USUAL_NS = NS_PER_S // 2
"""Fifteen pictures of a video: what it does as a rule."""
JUDGED_NS = NS_PER_S
"""Over how long one sees whether it gets what it is due. A person has noticed nothing by then."""
LATELY_NS = NS_PER_S // 2
"""Of time as it goes by, not of its own: so many may wait for their turns that it takes seconds to be seen for
USUAL_NS, and one that was idle for a while would be taken for one that pauses for as long."""
HEAVY_PART = 0.9
"""Who leaves less than a tenth of the time to others leaves no gap that a burst of theirs fits in."""
LIGHT_PART = 0.8
SEEN_NS = 3 * RECENT_NS
"""One is not let in beside others for what it seemed to be when it began."""
HEAVY_BURST = 0.8
"""Of a slice: so long a burst is as much in the way as somebody who never pauses."""


@dataclass(slots=True)
class Use:
    """What the pages of an allocation's clients say."""

    gpu_ns: int = 0
    """Since they were read last, by learned costs."""
    idle_ns: int = 0
    """How long, since they were read last, nothing was queued, and no launch at the gate."""
    undrained_ns: int = 0
    """GPU time since nothing was queued, by the counters."""
    waits: bool = False
    """A launch is at the closed gate."""
    queued: bool = False
    """Something that was launched has not ended …"""
    running_ns: int = 0
    """… of which so much may have run already, and is in no counter yet."""
    unheard_ns: int = 0
    """GPU time that is in the counters, and that no record has told of."""
    pages: int = 0
    """Those of how many clients were read."""
    lies: bool = False
    """A counter went back, or a part of one is more than the whole: no hook ever says that."""


class Demand:
    """Parts are means over the time in which it did as it liked: what it spends at a closed gate, or with its kernels
    behind those of others, says nothing about it."""

    __slots__ = (
        "_has_used",
        "_lately_free_ns",
        "_lately_gpu_ns",
        "_read_ns",
        "_seen_ns",
        "gpu_ns",
        "queued",
        "recent",
        "running_ns",
        "undrained_ns",
        "used",
        "usual",
        "waits",
    )

    def __init__(self) -> None:
        self.gpu_ns = 0  # that it has not been charged with yet
        self.undrained_ns = self.running_ns = 0
        self.waits = False
        self.queued = False
        # Nothing is known of it yet: it is taken for somebody light, until it has been seen for a few looks.
        self.recent = 0.5
        self.usual = 0.1
        self._seen_ns = RECENT_NS
        self._has_used = False
        self._read_ns = 0
        # GPU time, and that and idle time, faded by LATELY_NS as time goes by.
        self._lately_gpu_ns = self._lately_free_ns = 0.0
        self.used = 0.0  # GPU time, mean of JUDGED_NS

    def read(
        self,
        gpu_ns: int,
        idle_ns: int,
        undrained_ns: int,
        waits: bool,
        queued: bool,
        running_ns: int = 0,
        *,
        now_ns: int,
    ) -> None:
        """Takes in what the pages of its clients say at a time.

        GPU time by learned cost, and idle time, with nothing queued and no launch at the gate, are since the last
        reading: of several clients the sum of the one, the least of the other. A counter that went back counts as one
        that stood still. ``undrained_ns`` is the GPU time since it last had nothing queued; ``waits``: a launch is at
        the closed gate; ``queued``: something that it launched has not ended, of which ``running_ns`` may have run
        already, and is in no counter yet.
        """
        gpu_ns, idle_ns = max(0, gpu_ns), max(0, idle_ns)
        self.gpu_ns += gpu_ns
        self.undrained_ns, self.running_ns = undrained_ns + running_ns, running_ns
        self.waits, self.queued = waits, queued
        # What it did before it used the device for the first time says nothing about what it does with it.
        free_ns = gpu_ns + idle_ns if self._has_used else gpu_ns
        self._has_used = self._has_used or gpu_ns > 0
        stays = exp(-max(0, now_ns - self._read_ns) / LATELY_NS)
        self._read_ns = max(now_ns, self._read_ns)
        self._lately_gpu_ns *= stays
        self._lately_free_ns *= stays
        if free_ns:
            # Of a long time it is the last part that counts: more than LATELY_NS of it would have faded.
            fresh = min(1.0, LATELY_NS / free_ns)
            self._lately_gpu_ns += gpu_ns * fresh
            self._lately_free_ns += free_ns * fresh
            part = gpu_ns / free_ns
            self.recent += (part - self.recent) * (1 - exp(-free_ns / RECENT_NS))
            self._seen_ns += free_ns
            # At first the mean of all there is: who has a twentieth of a device takes long to be seen for USUAL_NS.
            self.usual += (part - self.usual) * max(1 - exp(-free_ns / USUAL_NS), free_ns / self._seen_ns)

    def take(self) -> int:
        """GPU time that it has not been charged with yet: it will be."""
        gpu_ns, self.gpu_ns = self.gpu_ns, 0
        return gpu_ns

    def note_used(self, gpu_ns: int, elapsed_ns: int) -> None:
        """Takes in GPU time that it was charged with."""
        self.used += (gpu_ns / elapsed_ns - self.used) * (1 - exp(-elapsed_ns / JUDGED_NS))

    @property
    def had(self) -> float:
        """GPU time as a part of the device, with what runs and is in no counter yet: of long kernels that is much."""
        return self.used + self.running_ns / JUDGED_NS

    @property
    def leaves_gaps(self) -> bool:
        """Whether it has left time to others lately. A stranger may."""
        return self._lately_gpu_ns <= HEAVY_PART * self._lately_free_ns

    @property
    def seen_to_leave_gaps(self) -> bool:
        """Whether it is known to have left time to others, also if it was a stranger before: it has been seen for long
        enough, and is far from full now."""
        return self._seen_ns >= SEEN_NS and self.recent <= LIGHT_PART and self.leaves_gaps

    @property
    def works(self) -> bool:
        """Whether it has work now."""
        return self.waits or self.queued

    def heavy(self, slice_ns: int, within: bool) -> bool:
        """Whether it leaves no gaps. Of one ``within`` its guarantee a long burst is no such sign yet."""
        long = not within and self.undrained_ns > HEAVY_BURST * slice_ns
        return self.works and (long or self.recent > HEAVY_PART)


def fill(demands: list[float], weights: list[int]) -> list[float]:
    """Divides one device by water-filling: to nobody more than it demands, and what one leaves to the others, in
    proportion to the weights. Parts of the device, in the same order; weights above 0."""
    parts = [0.0] * len(demands)
    left = list(range(len(demands)))
    rest = 1.0
    while left:
        weight = sum(weights[index] for index in left)
        content = [index for index in left if demands[index] <= rest * weights[index] / weight]
        if not content:
            for index in left:
                parts[index] = rest * weights[index] / weight
            break
        for index in content:
            parts[index] = demands[index]
        left = [index for index in left if index not in content]
        rest = max(0.0, rest - sum(demands[index] for index in content))
    return parts
