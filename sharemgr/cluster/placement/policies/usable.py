"""Our own, the default: keeps what stays free usable for all that comes. A pod goes where the sum of two amounts of
GPU units grows least:

    fragmentation   as in fgd.py, but each shape counts times its price: all free units over those that it can use. So
                    what little is left for pods of eight GPUs, or of a rare model, is kept from pods that fit anywhere.
    stranding       free units that will never be used because the node's cores or RAM will be gone before: expected
                    over the shapes seen, each taken alone to fill up the node.

Of equals, the node with the fewest idle GPUs. Both count alike; there is nothing to tune.

A bad choice where pods should be spread for latency or fault tolerance (spread.py), and before any pods have been seen.
"""

import numpy as np

from sharemgr.cluster.placement.demand import Demand
from sharemgr.cluster.placement.options import Options
from sharemgr.cluster.placement.policies.fgd import TIE_UNITS, worth_growth
from sharemgr.cluster.placement.rows import Floats, Ints, sum_of_gpus


def score(options: Options, demand: Demand) -> Floats:
    """See the module."""
    free = sum_of_gpus(options.usable)
    before = _stranded(free, options.rows.cpu_milli, options.rows.ram_mib, demand)
    after = _stranded(free - options.units, options.cpu_after_milli, options.ram_after_mib, demand)
    growth: Floats = worth_growth(options, demand, demand.priced) - (after - before)[:, None]
    return growth - TIE_UNITS * options.idle_after


def _stranded(free_units: Ints, cpu_milli: Ints, ram_mib: Ints, demand: Demand) -> Floats:
    """node: free units that will find no cores, or no RAM."""
    with_cpu = demand.cpu.usable_units(free_units, cpu_milli)
    with_ram = demand.ram.usable_units(free_units, ram_mib)
    with_both: Floats = np.minimum(with_cpu, with_ram)
    return free_units - with_both
