"""The placement policies, by name.

Each is a function of the places that an ask could have and of the shapes seen so far. It gives a number for each node
and GPU: higher is better. What does not fit is left out by who asks; the numbers of a pod's containers are added up.
"""

from collections.abc import Callable

from sharemgr.cluster.placement.demand import Demand
from sharemgr.cluster.placement.options import Options
from sharemgr.cluster.placement.policies import aware, binpack, fgd, spread, usable
from sharemgr.cluster.placement.rows import Floats

Policy = Callable[[Options, Demand], Floats]

POLICIES: dict[str, Policy] = {
    "usable": usable.score,
    "fgd": fgd.score,
    "binpack": binpack.score,
    "spread": spread.score,
    "aware": aware.score,
}
DEFAULT = "usable"
