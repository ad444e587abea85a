"""What the rule of exclusive turns (policy.py) knows of one allocation."""

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

    def throttled_until_ns(self, settings: Settings) -> int:
        """When it may compete again as far as its limit is concerned; in the past where it may now."""
        if self.limit_percent >= 100:
            return 0
        return self.tat_ns - settings.limit_burst_ns

    def charge_limit(self, gpu_ns: int) -> None:
        """Takes GPU time from the leaky bucket."""
        if self.limit_percent < 100:
            self.tat_ns += gpu_ns * 100 // self.limit_percent

    def change_limit(self, limit_percent: int, now_ns: int) -> None:
        """Sets another limit; GPU time that was used ahead of the old one stays used ahead of the new one."""
        ahead_ns = self.tat_ns - now_ns
        if ahead_ns > 0:
            self.tat_ns = now_ns + ahead_ns * self.limit_percent // limit_percent
        self.limit_percent = limit_percent

    def urgent(self, now_ns: int, settings: Settings) -> bool:
        """Whether it is of the latency class and has budget left."""
        if not self.latency:
            return False
        if now_ns >= self.period_end_ns:
            full_ns = self.request_percent * settings.budget_period_ns // 100
            periods = 1 + (now_ns - self.period_end_ns) // settings.budget_period_ns
            self.budget_ns = min(full_ns, self.budget_ns + periods * full_ns)
            self.period_end_ns = now_ns + settings.budget_period_ns
        return self.budget_ns > 0

    def renew_budget(self, now_ns: int, settings: Settings) -> None:
        """On waking: begins a new period where what is left would last beyond this one at the rate r, as the
        constant-bandwidth server does."""
        if (
            self.urgent(now_ns, settings)
            and self.budget_ns * 100 > (self.period_end_ns - now_ns) * self.request_percent
        ):
            self.budget_ns = self.request_percent * settings.budget_period_ns // 100
            self.period_end_ns = now_ns + settings.budget_period_ns
