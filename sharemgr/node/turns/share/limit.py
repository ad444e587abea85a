"""An allocation's limit: a leaky bucket (GCRA, ITU-T I.371), counted in GPU time. ``tat_ns`` is when all that was used
would have been used at the limit's rate."""

from sharemgr.node.turns.settings import Settings
from sharemgr.node.turns.share.standing import Standing


def is_limited(standing: Standing) -> bool:
    """Whether it may not have all of the device."""
    return standing.limit_percent < 100


def throttled_until_ns(standing: Standing, settings: Settings) -> int:
    """When it may compete again as far as its limit is concerned; in the past where it may now."""
    if not is_limited(standing):
        return 0
    return standing.tat_ns - settings.limit_burst_ns


def charge_limit(standing: Standing, gpu_ns: int) -> None:
    """Takes GPU time from the leaky bucket."""
    if is_limited(standing):
        standing.tat_ns += gpu_ns * 100 // standing.limit_percent


def change_limit(standing: Standing, limit_percent: int, now_ns: int) -> None:
    """Sets another limit; GPU time that was used ahead of the old one stays used ahead of the new one."""
    ahead_ns = standing.tat_ns - now_ns
    if ahead_ns > 0:
        standing.tat_ns = now_ns + ahead_ns * standing.limit_percent // limit_percent
    standing.limit_percent = limit_percent
