"""The GPU with the most left afterwards, of equals the node with the most left.

A bad choice where pods ask for whole GPUs, or several: parts of GPUs are taken everywhere, and soon none is idle.
"""

from sharemgr.cluster.placement.demand import Demand
from sharemgr.cluster.placement.options import Options
from sharemgr.cluster.placement.policies import binpack
from sharemgr.cluster.placement.rows import Floats


def score(options: Options, demand: Demand) -> Floats:
    """See the module."""
    return -binpack.score(options, demand)
