"""What is free of one kind of device, with one row a node: kept up to date from the ledger, read by the policies. And,
where there are profiles, beside whom.

A row is kept in plain numbers, by which nodes are told to be of one kind, and written into the arrays when these are
looked at: in a cluster of few kinds of node that is seldom."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from edgeshare.contract.devices import Accelerator
from edgeshare.contract.units import UNITS_PER_DEVICE
from sharemgr.cluster.placement.neighbours import Neighbours
from sharemgr.cluster.placement.rows import NO_ROW, UNLIMITED, Gpu, Ints, Row, Rows
from sharemgr.cluster.state.eligibility import NOBODY, held_by, obtainable
from sharemgr.cluster.state.ledger import Ledger
from sharemgr.cluster.state.nodes import Device, Node, Use
from sharemgr.cluster.state.profiles import Profiles

KINDS_GONE_MAX = 1_000
"""Kinds of which there is no node are remembered, and as many more as there are others."""

NO_KIND = -1
"""Of a row without a node."""


@dataclass(frozen=True, slots=True)
class Model:
    """Devices that are alike."""

    name: str
    memory_mib: int


NO_MODEL = Model("", 0)
"""The first of a table's models: of the columns that a node has no GPU for."""


class _Untouched(NamedTuple):
    """A node's devices while nobody has a part of one."""

    devices: tuple[Device, ...]
    gpus: tuple[Gpu, ...]
    """What is free of them."""
    places: dict[str, int]
    """Of each in these, by its id."""


NOTHING = _Untouched((), (), {})
"""Of a node that is gone."""


class Table:
    """The rows of a ledger's nodes, for one kind of device (GPUs, where it is not said)."""

    def __init__(self, profiles: Profiles | None = None, kind: Accelerator = Accelerator.GPU) -> None:
        self.accelerator = kind
        self.models = [NO_MODEL]
        self._place_of_model = {(NO_MODEL.name, NO_MODEL.memory_mib): 0}
        """By what a model is, so that none has to be made for each GPU that is looked at."""
        self.exclusions = {"": 0}
        self.row: dict[str, int] = {}
        """By node."""
        self.nodes: list[str] = []
        """By row; empty where a node is gone, until another takes its place."""
        self.kind: dict[str, int] = {}
        """By node: the same only where all that a policy sees of a node is."""
        self.of_kind: dict[int, set[str]] = {}
        """The nodes of each kind that there is."""
        self.profiles = profiles
        self.neighbours = None if profiles is None else Neighbours.of_nobody(0, 1)
        """In the same rows; None where there are no profiles."""
        self._kinds: dict[Row, int] = {}
        """Also those of which there is no node: one is again what it was when a pod leaves."""
        self._kinds_ever = 0
        self._plain: list[Row] = []
        """By row."""
        self._untouched: list[_Untouched] = []
        """By row."""
        self._rows = Rows.of_none(0, 1)
        self._unwritten: set[int] = set()
        """Rows that differ from those of the arrays."""
        self._gone: list[int] = []

    @property
    def rows(self) -> Rows:
        """As arrays."""
        if self._unwritten:
            self._write()
        return self._rows

    @property
    def width(self) -> int:
        """How many GPUs a row has room for."""
        width: int = self._rows.free_units.shape[1]
        return width

    def plain(self, name: str) -> Row:
        """A node's row."""
        return self._plain[self.row[name]]

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
                self._take_in(name, node)
            elif name in self.row:
                self._clear(name)

    def distinct(self, rows: Ints) -> Ints:
        """The first of ``rows`` of each kind: a policy makes the same of all of a kind."""
        first: dict[int, int] = {}
        for row in rows.tolist():
            first.setdefault(self.kind[self.nodes[row]], row)
        return np.array(list(first.values()), np.int64)

    def _take_in(self, name: str, node: Node) -> None:
        row, devices = self._row(name), node.of(self.accelerator)
        self._make_room(row + 1, len(devices))
        cpu_milli, ram_mib = node.cpu_free_milli, node.ram_free_mib
        now = Row(
            self._gpus(row, devices, node),
            UNLIMITED if cpu_milli is None else max(0, cpu_milli),
            UNLIMITED if ram_mib is None else max(0, ram_mib),
            self._beside_whom(row, devices, node),
        )
        if now != self._plain[row]:
            self._plain[row] = now
            self._unwritten.add(row)
            self._leave_kind(name)
            kind = self.kind[name] = self._kind(now)
            self.of_kind.setdefault(kind, set()).add(name)

    def _row(self, name: str) -> int:
        row = self.row.get(name)
        if row is None:
            row = self._gone.pop() if self._gone else len(self.nodes)
            if row == len(self.nodes):
                self.nodes.append("")
                self._plain.append(NO_ROW)
                self._untouched.append(NOTHING)
            self.row[name] = row
            self.nodes[row] = name
        return row

    def _make_room(self, least_height: int, least_width: int) -> None:
        height, width = self._rows.free_units.shape
        if least_height > height or least_width > width:
            height, width = max(least_height, height + height // 2), max(width, least_width)
            self._rows = self._rows.grown(height, width)
            if self.neighbours is not None:
                self.neighbours = self.neighbours.grown(height, width)

    def _gpus(self, row: int, devices: tuple[Device, ...], node: Node) -> tuple[Gpu, ...]:
        untouched = self._untouched[row]
        if untouched.devices is not devices:
            places = {device.id: place for place, device in enumerate(devices)}
            untouched = _Untouched(devices, tuple(map(self._untouched_gpu, devices)), places)
            self._untouched[row] = untouched
        if not node.use:
            return untouched.gpus
        gpus = list(untouched.gpus)
        for device_id, use in node.use.items():
            place = untouched.places.get(device_id)
            if place is not None:
                free_units, free_mib, total_mib, model, _ = gpus[place]
                free_units -= use.units
                free_mib -= use.memory_mib
                exclusion = self._exclusion(use)
                gpus[place] = Gpu(
                    free_units if free_units > 0 else 0, free_mib if free_mib > 0 else 0, total_mib, model, exclusion
                )
        return tuple(gpus)

    def _untouched_gpu(self, device: Device) -> Gpu:
        units, mib = obtainable(device, UNITS_PER_DEVICE, device.memory_mib)
        return Gpu(units, mib, device.memory_mib, self._model(device), NOBODY)

    def _beside_whom(self, row: int, devices: tuple[Device, ...], node: Node) -> bytes:
        if self.neighbours is None or self.profiles is None:
            return b""
        self.neighbours.clear(row)
        for place, device in enumerate(devices):
            use = node.use.get(device.id)
            if use is not None:
                self.neighbours.write(row, place, use, self.profiles.on(device.model))
        return self.neighbours.bytes_of(row)

    def _kind(self, row: Row) -> int:
        kind = self._kinds.get(row)
        if kind is None:
            if len(self._kinds) > 2 * len(self.of_kind) + KINDS_GONE_MAX:
                self._kinds = {each: kind for each, kind in self._kinds.items() if kind in self.of_kind}
            kind = self._kinds[row] = self._kinds_ever
            self._kinds_ever += 1
        return kind

    def _leave_kind(self, name: str) -> None:
        kind = self.kind.pop(name, None)
        if kind is not None:
            others = self.of_kind[kind]
            others.discard(name)
            if not others:
                del self.of_kind[kind]

    def _clear(self, name: str) -> None:
        row = self.row.pop(name)
        self._leave_kind(name)
        self.nodes[row], self._plain[row], self._untouched[row] = "", NO_ROW, NOTHING
        self._unwritten.add(row)
        if self.neighbours is not None:
            self.neighbours.clear(row)
        self._gone.append(row)

    def _write(self) -> None:
        """Brings the arrays up to date."""
        index = list(self._unwritten)
        self._unwritten.clear()
        kinds = [self.kind.get(self.nodes[row], NO_KIND) for row in index]
        first = dict(zip(kinds, index, strict=True))
        places = {kind: place for place, kind in enumerate(first)}
        self._rows.write(index, [self._plain[row] for row in first.values()], [places[kind] for kind in kinds])

    def _model(self, device: Device) -> int:
        """Where its model stands among all; it is put last where it does not."""
        place = self._place_of_model.setdefault((device.model, device.memory_mib), len(self.models))
        if place == len(self.models):
            self.models.append(Model(device.model, device.memory_mib))
        return place

    def _exclusion(self, use: Use) -> int:
        for exclusion in use.exclusions:
            self.exclusions.setdefault(exclusion, len(self.exclusions))
        held = held_by(use.exclusions)
        return held if isinstance(held, int) else self.exclusions[held]
