"""As ``usable``, and by profiles (profiles.py) beside whom: a pod goes where the sum of these grows least, all in units
of a GPU.

    room      what ``usable`` counts: fragmentation and stranding.
    crowding  GPU time that the pods of a GPU would use if nobody kept them waiting, beyond all that it has. So much
              work is lost: programs that saturate a GPU go apart from each other, and bursty ones together.
    wait      for each pod of the latency class, the part of 50 ms that the longest kernel of the others takes. Nothing
              can interrupt a kernel: for so long the pod may have no GPU, of each period of its class's budget.
    slowness  the units that the pod would not need on the best model that it may have now, on which its kernels are
              the shortest.

What nobody knows counts as nothing, so that without profiles the choice is that of ``usable``. All count alike; there
is nothing to tune. Crowding is a GPU at most, slowness what the pod asks for, and a wait a GPU for each pod that waits:
so an absurd profile does no more harm than one that is wrong.

A bad choice where

- profiles are wrong, or old: then a latency pod goes to the long kernels that it should avoid. A program has none
  before its first run is over, a label as its key may stand for several programs, and who is on a node is judged by
  what was known when something last changed there;
- all GPUs have long kernels on them already, or are nearly full, or there are few: nothing is left to choose, and who
  came first counts. Nobody is moved;
- room is all that counts: programs are kept apart at some of its cost, and the best model fills up with pods that
  could have another;
- a kernel is long once an hour: it counts as if it ran all the time, in sixteen runs to come;
- a program is slowed down by a neighbour's use of memory or caches: nothing of that is looked at.
"""

from collections.abc import Callable, Iterable

import numpy as np

from edgeshare.contract.units import UNITS_PER_DEVICE
from sharemgr.cluster.placement.demand import Demand
from sharemgr.cluster.placement.neighbours import Known
from sharemgr.cluster.placement.options import Options
from sharemgr.cluster.placement.policies import usable
from sharemgr.cluster.placement.rows import Floats

PERIOD_US = 50_000
"""Of the latency class's budget, on each node (``budget_period_ns`` in sharemgr/node/turns/settings.py)."""

Cost = Callable[[Options, Known], Floats]


def score(options: Options, demand: Demand) -> Floats:
    """See the module."""
    return score_by(COSTS.values(), options, demand)


def score_by(costs: Iterable[Cost], options: Options, demand: Demand) -> Floats:
    """By room, and by these of the other terms."""
    room = usable.score(options, demand)
    known = options.known
    if known is None or not options.ask.devices:
        return room
    sum_units: Floats = sum((cost(options, known) for cost in costs), np.zeros(options.fits.shape))
    return room - sum_units


def _crowding(options: Options, known: Known) -> Floats:
    before = known.neighbours.demand_units
    after = before + known.demand_units[options.rows.model]
    lost: Floats = np.maximum(after, UNITS_PER_DEVICE) - np.maximum(before, UNITS_PER_DEVICE)
    return lost


def _wait(options: Options, known: Known) -> Floats:
    there = _kept_out(known.neighbours.longest_kernel_us)
    own = _kept_out(known.longest_kernel_us)[options.rows.model]
    waits: Floats = known.latency * there + known.neighbours.latency * np.maximum(0, own - there)
    return waits


def _kept_out(kernel_us: Floats) -> Floats:
    """A GPU's units for as long as a kernel takes of a period."""
    units: Floats = UNITS_PER_DEVICE * np.minimum(1, kernel_us / PERIOD_US)
    return units


def _slowness(options: Options, known: Known) -> Floats:
    kernel_us = known.kernel_us[options.rows.model]
    is_known = kernel_us > 0
    best_us = kernel_us.min(where=is_known & options.fits, initial=np.inf)
    of_best = np.divide(best_us, kernel_us, out=np.ones_like(kernel_us), where=is_known)
    not_needed: Floats = options.units * (1 - np.minimum(1, of_best))
    return not_needed


COSTS: dict[str, Cost] = {"crowding": _crowding, "wait": _wait, "slowness": _slowness}
"""The terms besides room."""
