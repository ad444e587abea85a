"""What an allocation of the latency class has, to go first: a budget in each period, as a constant-bandwidth server
(Abeni and Buttazzo, 1998)."""

from sharemgr.node.turns.settings import Settings
from sharemgr.node.turns.share.standing import Standing


def is_urgent(standing: Standing, now_ns: int, settings: Settings) -> bool:
    """Whether it is of the latency class and has budget left, which a period that has begun brings."""
    if not standing.latency:
        return False
    if now_ns >= standing.period_end_ns:
        full_ns = standing.request_percent * settings.budget_period_ns // 100
        periods = 1 + (now_ns - standing.period_end_ns) // settings.budget_period_ns
        standing.budget_ns = min(full_ns, standing.budget_ns + periods * full_ns)
        standing.period_end_ns = now_ns + settings.budget_period_ns
    return standing.budget_ns > 0


def renew_budget(standing: Standing, now_ns: int, settings: Settings) -> None:
    """On waking: begins a new period where what is left would last beyond this one at the rate r, as the
    constant-bandwidth server does."""
    if (
        is_urgent(standing, now_ns, settings)
        and standing.budget_ns * 100 > (standing.period_end_ns - now_ns) * standing.request_percent
    ):
        standing.budget_ns = standing.request_percent * settings.budget_period_ns // 100
        standing.period_end_ns = now_ns + settings.budget_period_ns
