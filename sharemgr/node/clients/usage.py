"""What a client says that it used of its device: by its pages, and by its records, each told once."""

from typing import Any

from cuda_hook._core import ffi
from cuda_hook.gate import GRANT_NUMBER_MAX, GatePages
from edgeshare.contract.units import NS_PER_MS
from sharemgr.node.turns.demand import Use

USAGE_SLACK_NS = NS_PER_MS
"""By how much, and a sixteenth, reported GPU time may exceed the time since the gate was opened before it counts as a
lie: events that were timed while another one had the device are that wrong."""


class Counters:
    """The counters in a client's pages, as they were last read."""

    __slots__ = (
        "_gpu_ns",
        "_heard_ns",
        "_idle_ns",
        "_lied",
        "_looked_gpu_ns",
        "_moved_at_ns",
        "_read_at_ns",
        "_told_ns",
        "_used",
        "quiet_looks",
    )

    def __init__(self, now_ns: int) -> None:
        self._used: Any = ffi.new("struct es_used *")
        self._gpu_ns = self._idle_ns = 0
        # GPU time in all: by its records, and as far as it has been taken in, be it by a record or from its pages.
        self._told_ns = self._heard_ns = 0
        self._moved_at_ns = self._read_at_ns = now_ns
        self._looked_gpu_ns = 0
        self._lied = False  # since the last look at the devices
        self.quiet_looks = 0
        """So many looks at the devices came one after the other in which its pages told of no use."""

    def opened(self, granted_at_ns: int) -> None:
        """The client's gate was opened after it had been closed."""
        if not self._used.queued:
            # It could submit nothing since it was read last, and that may be long ago.
            self._moved_at_ns = self._read_at_ns = max(self._read_at_ns, granted_at_ns)

    def add(self, pages: GatePages, use: Use, now_ns: int) -> None:
        """Adds to its allocation's use what its pages say since this was last called. A counter that went back is
        waited for, and is a lie: whoever connects anew has new pages."""
        told = self._used
        pages.used(told)
        idle_ns = told.idle_ns
        if 0 < told.idle_since_ns < now_ns:
            idle_ns += now_ns - told.idle_since_ns
        gpu_ns = told.gpu_ns
        if not told.queued:
            self._moved_at_ns = now_ns
        elif gpu_ns > self._gpu_ns:
            # At some time since it was read last.
            self._moved_at_ns = self._read_at_ns
        self._read_at_ns = now_ns
        if gpu_ns < max(self._gpu_ns, told.drained_gpu_ns):
            use.lies = self._lied = True
        use.gpu_ns += max(0, gpu_ns - self._gpu_ns)
        use.idle_ns = min(use.idle_ns, max(0, idle_ns - self._idle_ns))
        self._gpu_ns, self._idle_ns = max(self._gpu_ns, gpu_ns), max(self._idle_ns, idle_ns)
        use.unheard_ns += max(0, gpu_ns - self._heard_ns)
        use.waits = use.waits or told.waits != 0
        if told.queued:
            use.queued = True
            use.undrained_ns += max(0, gpu_ns - told.drained_gpu_ns)
            use.running_ns += min(now_ns - self._moved_at_ns, told.pending_ns)

    def look(self, pages: GatePages) -> bool:
        """The devices are looked at; False where the pages say, or said since the last look, what cannot be: less than
        they did, or more until the last drain than in all."""
        told = self._used
        pages.used(told)
        gpu_ns: int = told.gpu_ns
        drained_gpu_ns: int = told.drained_gpu_ns
        most_ns, self._looked_gpu_ns = self._looked_gpu_ns, gpu_ns
        quiet = not told.queued and gpu_ns == most_ns
        self.quiet_looks = self.quiet_looks + 1 if quiet else 0
        lied, self._lied = self._lied, False
        return not lied and max(most_ns, self._gpu_ns, drained_gpu_ns) <= gpu_ns

    def hear_all(self) -> None:
        """What its pages said when they were last read has been taken in."""
        self._heard_ns = max(self._heard_ns, self._gpu_ns)

    def unheard_ns(self, pages: GatePages) -> int:
        """GPU time that its pages know of and that has not been taken in yet."""
        pages.used(self._used)
        gpu_ns: int = self._used.gpu_ns
        return max(0, gpu_ns - self._heard_ns)

    def take_in(self, gpu_ns: int) -> int:
        """A record tells of this GPU time; returns what of it has not been taken in from its pages."""
        self._told_ns += gpu_ns
        unheard_ns = max(0, self._told_ns - self._heard_ns)
        self._heard_ns += unheard_ns
        return unheard_ns


class Claims:
    """The numbers that a client's gate showed since it released, and the GPU time that it claims for them: what it says
    has to repeat one of them, and to fit in the time."""

    __slots__ = ("_claimed_ns", "_first", "_last", "_opened_at_ns")

    def __init__(self) -> None:
        self._first = self._last = 0
        self._opened_at_ns = 0
        self._claimed_ns = 0

    def shown(self, number: int, granted_at_ns: int) -> bool:
        """The client's gate shows a number; whether that is the first one since it released."""
        first = not self._first
        if first:
            self._first = number
            self._opened_at_ns = granted_at_ns
            self._claimed_ns = 0
        self._last = number
        return first

    def released(self) -> None:
        """The client gave its grant back."""
        self._first = 0

    def has_shown(self, number: int) -> bool:
        """Whether its gate has shown this number since it released."""
        first = self._first
        return first > 0 and (number - first) % GRANT_NUMBER_MAX <= (self._last - first) % GRANT_NUMBER_MAX

    def are_false(self, gpu_ns: int, now_ns: int) -> bool:
        """Adds GPU time that it reports; whether that is more than there was."""
        self._claimed_ns += gpu_ns
        passed_ns = now_ns - self._opened_at_ns
        if self._claimed_ns <= passed_ns + (passed_ns >> 4) + USAGE_SLACK_NS:
            return False
        self._claimed_ns = passed_ns
        return True
