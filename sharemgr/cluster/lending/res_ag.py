"""Resource-agnostic: a pod takes what it declares, its limit, whatever it uses. (The baseline of Kube-Knots, Thinakaran
et al., CLUSTER 2019.)

A bad choice where people declare more than they use: what they declare too much stays empty.
"""

from sharemgr.cluster.lending.card import Card, Policy, Profiled, Room, by_limit


def room(card: Card, profiles: Profiled, now_s: float) -> Room:
    """See the module."""
    return Room(card.usable_mib - sum(resident.asked.limit_mib for resident in card.residents), "limits of its pods")


POLICY = Policy(room, by_limit, needs_samples=False)
