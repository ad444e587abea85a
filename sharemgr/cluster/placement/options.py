"""Where an ask could go: each node and GPU that can hold it, and what would be left there."""

from dataclasses import dataclass

import numpy as np

from edgeshare.contract.units import UNITS_PER_DEVICE
from sharemgr.cluster.placement.neighbours import Known
from sharemgr.cluster.placement.rows import Bools, Ints, Rows, sum_of_gpus, usable_units
from sharemgr.cluster.state.eligibility import has_room
from sharemgr.cluster.state.request import Ask

NOTHING = Ask(0, 0)
"""What a pod without a GPU asks for."""


@dataclass(slots=True)
class Options:
    """All places for one ask, as arrays. An ask of whole GPUs, or of none, has one place a node: the column of the
    first GPU that it can have."""

    index: Ints
    """Which of the rows that were asked about can hold it; all that follows is of these alone."""
    rows: Rows
    """Before."""
    ask: Ask
    each: Bools
    """node × GPU: whether that GPU can hold the part that each GPU of the ask is to hold."""
    fits: Bools
    """node × GPU: whether the ask can have its place there."""
    need_mib: Ints
    """node × GPU: the memory that it takes there."""
    usable: Ints
    """node × GPU: usable units before."""
    left: Ints
    """node × GPU: usable units of that GPU after."""
    idle: Ints
    """node: idle GPUs before."""
    idle_after: Ints
    """node × GPU: idle GPUs of the node if it goes to that GPU."""
    cpu_after_milli: Ints
    """node"""
    ram_after_mib: Ints
    """node"""
    known: Known | None = None
    """None: there are no profiles."""

    def taken(self, column: Ints) -> Bools:
        """node × GPU: the GPUs that the ask takes if its place in each row is in that column."""
        if self.ask.is_whole:
            return self.each & (self.each.cumsum(axis=1) <= self.ask.devices)
        taken = np.zeros_like(self.each)
        taken[np.arange(len(column)), column] = self.ask.devices > 0
        return taken

    @property
    def units(self) -> int:
        """All that it takes."""
        return self.ask.devices * self.ask.units


def find_options(rows: Rows, ask: Ask, permitted: Bools | None, cpu_milli: int, ram_mib: int) -> Options:
    """The places for an ask of a pod that takes so much CPU and RAM with it; ``permitted`` (node × GPU) says which GPUs
    it may have, None: all."""
    need_mib = needed_mib(rows, ask)
    each = has_room(rows.free_units, rows.free_mib, ask.units, need_mib)
    if permitted is not None and ask.devices:
        each &= permitted
    enough = sum_of_gpus(each) >= max(ask.devices, 1)
    index = np.flatnonzero(enough & (rows.cpu_milli >= cpu_milli) & (rows.ram_mib >= ram_mib))
    if len(index) < len(each):
        rows, each, need_mib = rows.pick(index), each.take(index, axis=0), need_mib.take(index, axis=0)
    usable = rows.usable_units()
    idle = rows.idle()
    if ask.is_whole or ask is NOTHING:
        fits = np.zeros_like(each)
        fits[np.arange(len(index)), each.argmax(axis=1)] = True
        left = usable if ask is NOTHING else np.zeros_like(usable)
        idle_after = np.broadcast_to((idle - ask.devices)[:, None], fits.shape)
    else:
        fits = each
        left = np.maximum(usable_units(rows.free_units - ask.units, rows.free_mib - need_mib, rows.total_mib), 0)
        idle_after = idle[:, None] - (rows.free_units == UNITS_PER_DEVICE)
    return Options(
        index=index,
        rows=rows,
        ask=ask,
        each=each,
        fits=fits,
        need_mib=need_mib,
        usable=usable,
        left=left,
        idle=idle,
        idle_after=idle_after,
        cpu_after_milli=rows.cpu_milli - cpu_milli,
        ram_after_mib=rows.ram_mib - ram_mib,
    )


def needed_mib(rows: Rows, ask: Ask) -> Ints:
    """node × GPU: the memory that an ask takes of each."""
    if ask.memory_mib:
        return np.full_like(rows.total_mib, ask.memory_mib)
    return rows.total_mib * ask.units // UNITS_PER_DEVICE
