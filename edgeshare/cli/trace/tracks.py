"""A recording as a trace that Perfetto and chrome://tracing read (Trace Event Format): a process for each device, in it
a thread for each allocation, and on that a slice for each time that it waited, held or drained. Times are whole
microseconds since the recording's begin: fractions would not be read alike by everybody, and slices would overlap."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count, pairwise
from typing import Any

from edgeshare import __version__
from edgeshare.cli.trace.lines import HOLDING, TURN, WAITING, Line, Span
from edgeshare.cli.trace.recording import Recording
from edgeshare.contract.accelerator_kind import kind_of
from edgeshare.contract.units import NS_PER_S, NS_PER_US
from edgeshare.shown.words import owner_text
from edgeshare.v1.allocations_pb2 import Allocation

Event = dict[str, Any]

RECORDER = 1
"""As a process, what is of no device: the recording itself."""


@dataclass(frozen=True)
class Turn:
    """A span in which an allocation had a device for itself."""

    span: Span
    waits_from_ns: int | None
    """Since when it had waited for it, where it begins with this span."""
    place: dict[str, int]


def trace(recording: Recording, broke_off: str) -> dict[str, Any]:
    """The file's content; ``broke_off`` says why it ends early, empty where it does not."""
    told = {
        "producer": f"edgeshare {__version__}",
        "begin": datetime.fromtimestamp(recording.begin_epoch_ns / NS_PER_S, UTC).isoformat(),
        # As text: a number of so many digits is not read exactly by everybody.
        "begin_epoch_ns": str(recording.begin_epoch_ns),
        "begin_monotonic_ns": str(recording.begin_ns),
        "seconds": (recording.end_ns - recording.begin_ns) / NS_PER_S,
        "lost_changes": sum(loss.changes for loss in recording.losses),
        "broke_off": broke_off,
    }
    return {"traceEvents": list(Tracks(recording).events()), "displayTimeUnit": "ms", "otherData": told}


class Tracks:
    """A recording's events, by devices (``pid``) and what allocations have of them (``tid``). All these numbers differ:
    Perfetto knows a thread by its own alone, takes a process's for that of its first thread, and 0 for Linux' own."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        used = [(device_id, each) for each, line in recording.lines.items() for device_id in _devices(line)]
        devices = dict.fromkeys([*recording.devices, *(device_id for device_id, _ in used)])
        numbers = count(RECORDER + 1)
        self._pids = dict(zip(devices, numbers, strict=False))
        self._tids = dict(zip(used, numbers, strict=False))

    def events(self) -> Iterator[Event]:
        """All of them. A hand-over comes after the slices that it leads from and to."""
        yield from self._names()
        yield from self._losses()
        turns: dict[str, list[Turn]] = {device_id: [] for device_id in self._pids}
        for allocation_id, line in self._recording.lines.items():
            spans = self._recording.spans(line)
            for device_id in _devices(line):
                place = self._place(device_id, allocation_id)
                yield from (self._slice(span, line.allocation) | place for span in spans)
                turns[device_id] += _turns(spans, place)
        yield from self._rates()
        flows = count(1)
        for each in turns.values():
            yield from self._hand_overs(each, flows)

    def _names(self) -> Iterator[Event]:
        yield _name("process_name", "recording", {"pid": RECORDER})
        for device_id, pid in self._pids.items():
            yield _name("process_name", self._device_name(device_id), {"pid": pid})
        for allocation_id, line in self._recording.lines.items():
            for device_id in _devices(line):
                yield _name("thread_name", owner_text(line.allocation), self._place(device_id, allocation_id))

    def _losses(self) -> Iterator[Event]:
        for loss in self._recording.losses:
            name = f"{loss.changes} changes lost"
            yield {"ph": "i", "s": "g", "name": name, "ts": self._ts(loss.at_ns), "pid": RECORDER, "tid": RECORDER}

    def _slice(self, span: Span, allocation: Allocation) -> Event:
        args = {"allocation": allocation.id} | ({"grant": span.grant} if span.grant else {})
        ts = self._ts(span.begin_ns)
        return {"ph": "X", "name": span.name, "ts": ts, "dur": self._ts(span.end_ns) - ts, "args": args}

    def _rates(self) -> Iterator[Event]:
        """As far as anything was used; its last rate holds to the end."""
        lines = self._recording.lines
        told = {rate.allocation_id for rate in self._recording.rates if rate.percent}
        for rate in self._recording.rates:
            if rate.allocation_id not in told:
                continue
            line = lines[rate.allocation_id]
            for device_id in _devices(line):
                name = f"GPU time of {owner_text(line.allocation)} ({rate.allocation_id})"
                args = {"percent": round(rate.percent, 2)}
                place = {"pid": self._pids[device_id]}
                yield {"ph": "C", "name": name, "ts": self._ts(rate.from_ns), "args": args, **place}

    def _hand_overs(self, turns: list[Turn], flows: Iterator[int]) -> Iterator[Event]:
        """Of one device: from the one that had it to the one that had waited for that."""
        turns.sort(key=lambda turn: turn.span.begin_ns)
        for before, turn in pairwise(turns):
            waited = turn.waits_from_ns is not None and turn.waits_from_ns < before.span.end_ns
            if waited:
                what = {"cat": "hand-over", "name": "hand-over", "id": next(flows)}
                yield {"ph": "s", "ts": self._ts(before.span.begin_ns), **what, **before.place}
                yield {"ph": "f", "bp": "e", "ts": self._ts(turn.span.begin_ns), **what, **turn.place}

    def _ts(self, time_ns: int) -> int:
        return (time_ns - self._recording.begin_ns) // NS_PER_US

    def _place(self, device_id: str, allocation_id: str) -> dict[str, int]:
        return {"pid": self._pids[device_id], "tid": self._tids[device_id, allocation_id]}

    def _device_name(self, device_id: str) -> str:
        """By what its row of `edgeshare status` says; of one that came later only its id is known."""
        device = self._recording.devices.get(device_id)
        if device is None:
            return device_id or "no device is known"
        kind = kind_of(device.accelerator)
        return f"{kind.prefix if kind else device.accelerator} {device.index} {device.model} {device_id}"


def _devices(line: Line) -> Sequence[str]:
    return line.allocation.device_ids or ("",)


def _turns(spans: Sequence[Span], place: dict[str, int]) -> Iterator[Turn]:
    before: Span | None = None
    for span in spans:
        if span.name in TURN:
            waited = span.name == HOLDING and before is not None and before.name == WAITING
            yield Turn(span, before.begin_ns if waited and before is not None else None, place)
        before = span


def _name(what: str, name: str, place: dict[str, int]) -> Event:
    return {"ph": "M", "name": what, "args": {"name": name}, **place}
