"""Fragmentation gradient descent (Weng et al., "Beware of Fragmentation", USENIX ATC 2023).

A node's fragmentation is the free part of its GPUs that the next pod cannot use, in the mean over the shapes of pods
seen: all of it where the pod does not fit the node, else that on GPUs too full for it. A pod goes where that grows
least, of equals to the node with the fewest idle GPUs. (What is free shrinks by as much wherever it goes; so that is
also where the part that the next pod can use shrinks least.)

A bad choice where nodes run out of cores: it looks one pod ahead, and misses a core only when no pod fits any more. And
before any pods have been seen.
"""

from sharemgr.cluster.placement.demand import Demand, Worth
from sharemgr.cluster.placement.options import Options
from sharemgr.cluster.placement.rows import Floats, Ints, Rows

TIE_UNITS = 0.1
"""What an idle GPU counts, in units: enough to decide between equals, as sums of fractions are never quite equal."""


def score(options: Options, demand: Demand) -> Floats:
    """See the module."""
    return worth_growth(options, demand, demand.plain) - TIE_UNITS * options.idle_after


def worth_growth(options: Options, demand: Demand, worth: Worth) -> Floats:
    """node × GPU: by how much what is free of the node is worth more if the ask goes there; mostly below 0."""
    model, level = options.rows.model, demand.level(options.cpu_after_milli)
    all_gpus = worth.of_gpus(model, level, options.usable)
    taken = max(options.ask.devices, 1) * (worth.of_gpus(model, level, options.left) - all_gpus)
    now = node_worth(options.rows, options.usable, options.idle, demand, worth)
    growth: Floats = taken + worth.of_idle(model, level, options.idle_after) + (all_gpus.sum(axis=1) - now)[:, None]
    return growth


def node_worth(rows: Rows, usable: Ints, idle: Ints, demand: Demand, worth: Worth) -> Floats:
    """node: what the ``usable`` units of its GPUs, so many of them ``idle``, are worth together."""
    level = demand.level(rows.cpu_milli)
    of_gpus = worth.of_gpus(rows.model, level, usable).sum(axis=1)
    of_idle = worth.of_idle(rows.model[:, :1], level, idle[:, None])[:, 0]
    together: Floats = of_gpus + of_idle
    return together
