"""How long a client may have to wait by the rule at the top of ``sharemgr/node/turns/policy.py``."""

from sharemgr.node.turns.settings import Settings
from tests.kit.virtual.cases.paces import PACES

RULE = Settings()


def longest_wait_ns(kernel_ns: int, percent: int, pace: str = "plain") -> float:
    """Of a client with this request, where no kernel takes longer: its lag grows by its part of the time in which
    others run, from -q at least to q at most. A slice lasts for two where a GPU takes long to change between contexts,
    at most."""
    slice_ns = RULE.slice_ns * (2 if PACES[pace].machine else 1)
    q_ns = slice_ns + RULE.queue_cap_ns + kernel_ns + RULE.anticipation_ns
    return 2 * q_ns * 100 / percent
