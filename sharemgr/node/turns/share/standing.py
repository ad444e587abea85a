"""What the rules know of one allocation: that of exclusive turns (policy.py), and those of its limit and its class."""

from sharemgr.node.turns.settings import Settings, Share


class Standing:
    """One allocation as the rule sees it. Times are ns; `v` and `deadline` are virtual ns (held ns divided by r)."""

    __slots__ = (
        "active",
        "budget_ns",
        "caught_up_v",
        "deadline",
        "is_long",
        "known",
        "lag_ns",
        "latency",
        "left_ns",
        "limit_percent",
        "period_end_ns",
        "request_percent",
        "tat_ns",
        "think_ns",
        "turn_ns",
        "usual_turn_ns",
        "v",
    )

    def __init__(self, share: Share, settings: Settings, now_ns: int) -> None:
        self.request_percent = share.request_percent
        self.limit_percent = share.limit_percent
        self.latency = share.latency
        self.active = False
        self.v = 0
        self.deadline = 0
        self.lag_ns = 0
        self.left_ns = now_ns
        self.turn_ns = 0
        self.usual_turn_ns = settings.slice_ns
        self.known = False  # what a turn of it costs
        self.is_long = False  # its present turn
        self.caught_up_v = 0  # how far long turns have moved V, as far as it has had its part of that since
        # Nothing is known of it yet: half of A gives it the longest anticipation once.
        self.think_ns = settings.anticipation_ns // 2
        self.tat_ns = now_ns
        self.budget_ns = 0
        self.period_end_ns = now_ns

    def learn_think(self, think_ns: int, most_ns: int) -> None:
        """Takes in one think time. Long ones count as 2 A, so that one pause between many short ones changes little."""
        self.think_ns += (min(think_ns, 2 * most_ns) - self.think_ns) >> 3

    def anticipation_ns(self, most_ns: int) -> int:
        """A(c), where A is the most."""
        if self.think_ns > most_ns:
            return 0
        return min(most_ns, 2 * self.think_ns)
