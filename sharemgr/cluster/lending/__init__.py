"""The lending policies, by name: how much memory of a GPU a pod is promised above its guarantee.

Each is two functions of the GPU (what is usable, its pods and their samples, its own samples), of the profiles and of
the time: how much room there is, and how much of it a pod that asks takes (card.py). What holds for all of them is in
`decide`: no guarantee is ever over-committed, and without samples nothing is lent. They use the profiles of ``state``,
and the arrays of ``placement``.
"""

from sharemgr.cluster.lending import cbp, cbp_knots, pp, res_ag, safe
from sharemgr.cluster.lending.card import Policy

POLICIES: dict[str, Policy] = {
    "safe": safe.POLICY,
    "res-ag": res_ag.POLICY,
    "cbp": cbp.POLICY,
    "cbp-knots": cbp_knots.POLICY,
    "pp": pp.POLICY,
}
DEFAULT = "safe"
