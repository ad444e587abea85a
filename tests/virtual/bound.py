"""How long a client may have to wait by the rule at the top of ``sharemgr/node/policy.py``."""

from sharemgr.node.policy import Settings

RULE = Settings()


def longest_wait_ns(kernel_ns: int, percent: int) -> float:
    """Of a client with this request, where no kernel takes longer: its lag grows by its part of the time in which
    others run, from -q at least to q at most."""
    q_ns = RULE.slice_ns + RULE.queue_cap_ns + kernel_ns + RULE.anticipation_ns
    return 2 * q_ns * 100 / percent
