"""Best fit: the GPU with the least left afterwards, of equals the node with the least left.

A bad choice where nodes differ in cores per GPU: it leaves nodes with free GPUs and no cores. And where latency counts
more than room: neighbours come together while other GPUs idle.
"""

from sharemgr.cluster.placement.demand import Demand
from sharemgr.cluster.placement.options import Options
from sharemgr.cluster.placement.rows import Floats

NODE_UNITS_MAX = 1 << 16
"""More than a node has, so that what is left of the GPU counts first."""


def score(options: Options, demand: Demand) -> Floats:
    """See the module."""
    node_left = options.usable.sum(axis=1) - options.units
    tight: Floats = -(options.left * float(NODE_UNITS_MAX)) - node_left[:, None]
    return tight
