"""What is free of one kind of device, as arrays with one row a node: kept up to date from the ledger, read by the
policies. And, where there are profiles, beside whom."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeshare.contract.devices import Accelerator
from edgeshare.contract.units import UNITS_PER_DEVICE
from sharemgr.cluster.placement.neighbours import Neighbours
from sharemgr.cluster.state.ledger import Ledger
from sharemgr.cluster.state.nodes import Device, Node
from sharemgr.cluster.state.profiles import Profiles

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

UNLIMITED = 1 << 40
"""Millicores or MiB of RAM of a node of which they are not known."""

NO_NODE = -1
"""Millicores of a row without a node: it holds nothing, not even a pod that asks for nothing."""


@dataclass(frozen=True, slots=True)
class Model:
    """Devices that are alike."""

    name: str
    memory_mib: int


NO_GPU = Model("", 0)
"""The first of a table's models: of the columns that a node has no GPU for."""


NOBODY = -1
"""The exclusion of a GPU that no pod holds a part of."""

SEVERAL = -2
"""That of one on which pods of several exclusions came together: somebody else chose it for them."""


@dataclass(slots=True)
class Rows:
    """What is free of some nodes. Where a node has fewer GPUs than columns, or one is not healthy, nothing is free."""

    free_units: Ints
    """node × GPU"""
    free_mib: Ints
    """node × GPU"""
    total_mib: Ints
    """node × GPU; 0 where memory is not shared out"""
    model: Ints
    """node × GPU: a place in the table's list of models"""
    exclusion: Ints
    """node × GPU: a place among the table's exclusions, NOBODY or SEVERAL"""
    cpu_milli: Ints
    """node"""
    ram_mib: Ints
    """node"""

    def pick(self, rows: Ints) -> "Rows":
        """A copy of some of them."""
        return Rows(*(getattr(self, name).take(rows, axis=0) for name in Rows.__slots__))

    def usable_units(self) -> Ints:
        """node × GPU: the units for which memory, too, is left in proportion."""
        return usable_units(self.free_units, self.free_mib, self.total_mib)

    def idle(self) -> Ints:
        """node: how many GPUs nobody has a part of."""
        return sum_of_gpus(self.free_units == UNITS_PER_DEVICE)


def sum_of_gpus(numbers: Ints | Bools) -> Ints:
    """node: the sum over its GPUs. As ``sum(axis=1)``, in a tenth of the time: a node has few."""
    found: Ints = np.einsum("ij->i", numbers, dtype=np.int64)
    return found


def usable_units(free_units: Ints, free_mib: Ints, total_mib: Ints) -> Ints:
    """The units for which memory, too, is left in proportion."""
    if not total_mib.any():
        return free_units
    in_proportion = free_mib * UNITS_PER_DEVICE // np.maximum(total_mib, 1)
    return np.where(total_mib > 0, np.minimum(free_units, in_proportion), free_units)


class Table:
    """The rows of a ledger's nodes, for one kind of device (GPUs, where it is not said)."""

    def __init__(self, profiles: Profiles | None = None, kind: Accelerator = Accelerator.GPU) -> None:
        self.accelerator = kind
        self.models = [NO_GPU]
        self._place_of_model = {(NO_GPU.name, NO_GPU.memory_mib): 0}
        """By what a model is, so that none has to be made for each GPU that is looked at."""
        self.exclusions = {"": 0}
        self.row: dict[str, int] = {}
        """By node."""
        self.nodes: list[str] = []
        """By row; empty where a node is gone, until another takes its place."""
        self.kind: dict[str, int] = {}
        """By node: the same only where all that a policy sees of a node is."""
        self.rows = _empty(0, 1)
        self.profiles = profiles
        self.neighbours = None if profiles is None else Neighbours.of_nobody(0, 1)
        """In the same rows; None where there are no profiles."""
        self._gone: list[int] = []

    def update(self, ledger: Ledger) -> list[str]:
        """Takes in what has changed since the last time; returns the nodes that have."""
        changed = ledger.take_changed()
        self.take_in(ledger, changed)
        return changed

    def take_in(self, ledger: Ledger, changed: Iterable[str]) -> None:
        """Takes in what these nodes are now."""
        for name in changed:
            node = ledger.node(name)
            if node is not None:
                self._write(self._row(name), node)
            elif name in self.row:
                self._clear(name)

    def _row(self, name: str) -> int:
        row = self.row.get(name)
        if row is None:
            row = self._gone.pop() if self._gone else len(self.nodes)
            if row == len(self.nodes):
                self.nodes.append("")
            self.row[name] = row
            self.nodes[row] = name
        return row

    def _write(self, row: int, node: Node) -> None:
        devices = node.of(self.accelerator)
        height, width = self.rows.free_units.shape
        if row >= height or len(devices) > width:
            height, width = max(row + 1, height + height // 2), max(width, len(devices))
            self.rows = _grown(self.rows, height, width)
            if self.neighbours is not None:
                self.neighbours = self.neighbours.grown(height, width)
        rows = self.rows
        self._clear_row(row)
        for place, device in enumerate(devices):
            if device.healthy:
                units, mib = node.free(device)
                rows.free_units[row, place] = max(0, units)
                rows.free_mib[row, place] = max(0, mib)
            rows.total_mib[row, place] = device.memory_mib
            rows.model[row, place] = self._model(device)
            rows.exclusion[row, place] = self._exclusion(node, device)
            use = node.use.get(device.id)
            if self.neighbours is not None and self.profiles is not None and use is not None:
                self.neighbours.write(row, place, use, self.profiles.on(device.model))
        cpu_milli, ram_mib = node.cpu_free_milli, node.ram_free_mib
        rows.cpu_milli[row] = UNLIMITED if cpu_milli is None else max(0, cpu_milli)
        rows.ram_mib[row] = UNLIMITED if ram_mib is None else max(0, ram_mib)
        # 64 bits: that two of 5,000 different rows have the same is as good as impossible.
        beside_whom = b"" if self.neighbours is None else self.neighbours.bytes_of(row)
        self.kind[node.inventory.node] = hash(
            b"".join(getattr(rows, name)[row].tobytes() for name in Rows.__slots__) + beside_whom
        )

    def distinct(self, rows: Ints) -> Ints:
        """Of these rows, of each kind the first: a policy makes the same of all of a kind."""
        first: dict[int, int] = {}
        for row in rows.tolist():
            first.setdefault(self.kind[self.nodes[row]], row)
        return np.array(list(first.values()), np.int64)

    def _clear(self, name: str) -> None:
        row = self.row.pop(name)
        del self.kind[name]
        self._clear_row(row)
        self.nodes[row] = ""
        self._gone.append(row)

    def _clear_row(self, row: int) -> None:
        for name in Rows.__slots__:
            getattr(self.rows, name)[row] = 0
        self.rows.exclusion[row] = NOBODY
        self.rows.cpu_milli[row] = NO_NODE
        if self.neighbours is not None:
            self.neighbours.clear(row)

    def _model(self, device: Device) -> int:
        """Where its model stands among all; it is put last where it does not."""
        place = self._place_of_model.setdefault((device.model, device.memory_mib), len(self.models))
        if place == len(self.models):
            self.models.append(Model(device.model, device.memory_mib))
        return place

    def _exclusion(self, node: Node, device: Device) -> int:
        use = node.use.get(device.id)
        if use is None:
            return NOBODY
        places = [self.exclusions.setdefault(exclusion, len(self.exclusions)) for exclusion in use.exclusions]
        return places[0] if len(places) == 1 else SEVERAL


def _empty(height: int, width: int) -> Rows:
    shape = (height, width)
    free_units, free_mib, total_mib, model = (np.zeros(shape, np.int64) for _ in range(4))
    exclusion = np.full(shape, NOBODY, np.int64)
    cpu_milli = np.full(height, NO_NODE, np.int64)
    ram_mib = np.zeros(height, np.int64)
    return Rows(free_units, free_mib, total_mib, model, exclusion, cpu_milli, ram_mib)


def _grown(rows: Rows, height: int, width: int) -> Rows:
    grown = _empty(height, width)
    old_height, old_width = rows.free_units.shape
    for name in Rows.__slots__:
        old = getattr(rows, name)
        getattr(grown, name)[(slice(old_height), slice(old_width))[: old.ndim]] = old
    return grown
