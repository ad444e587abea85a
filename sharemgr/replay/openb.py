"""Reads the CSV files of the openb cluster trace (Alibaba, cluster-trace-gpu-v2023): a list of nodes and one of pods.

A GPU is counted there in thousandths; nothing is said about its memory. What does not look like that is refused, with
file and line.
"""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from edgeshare.contract.errors import InvalidRequest
from edgeshare.contract.units import MAX_DEVICES_PER_ALLOCATION, UNITS_PER_DEVICE
from sharemgr.cluster.state.nodes import Device, Inventory
from sharemgr.cluster.state.request import Ask, Request

MILLI_PER_UNIT = 10
NUMBER_MAX = 10**9
"""Of millicores and MiB: no node has more."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file, by column."""

    file: Path
    number: int
    fields: dict[str, str]

    def whole(self, column: str, most: int = NUMBER_MAX) -> int:
        """A number from 0 to ``most``."""
        text = self.fields[column]
        if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= most):
            raise self.wrong(f"{column} is {text[:40]!r}: expected a whole number from 0 to {most}")
        return int(text)

    def wrong(self, what: str) -> InvalidRequest:
        """The error that says where."""
        return InvalidRequest(f"{self.file} line {self.number}: {what}")


def read_nodes(file: Path) -> list[Inventory]:
    """The nodes, with ids for their GPUs. Raises InvalidRequest."""
    nodes: dict[str, Inventory] = {}
    for line in _lines(file, ("sn", "cpu_milli", "memory_mib", "gpu", "model")):
        name, model, gpus = line.fields["sn"], line.fields["model"], line.whole("gpu", MAX_DEVICES_PER_ALLOCATION)
        if not name or name in nodes:
            raise line.wrong(f"sn is {name[:40]!r}: expected a name that no other node has")
        if gpus and not model:
            raise line.wrong("the node has GPUs, but no model")
        nodes[name] = Inventory(
            name,
            tuple(Device(f"{name}-gpu-{index}", model, memory_mib=0) for index in range(gpus)),
            line.whole("cpu_milli"),
            line.whole("memory_mib"),
        )
    if not any(node.devices for node in nodes.values()):
        raise InvalidRequest(
            f"{file} has no node with a GPU: name a list of nodes such as openb_node_list_gpu_node.csv"
        )
    return list(nodes.values())


def read_pods(file: Path) -> list[Request]:
    """What the pods ask for. Raises InvalidRequest."""
    pods = []
    for line in _lines(file, ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")):
        asks = _asks(line)
        models = frozenset(line.fields.get("gpu_spec", "").split("|")) - {""}
        pods.append(Request(asks, line.whole("cpu_milli"), line.whole("memory_mib"), models if asks else frozenset()))
    if not any(pod.asks for pod in pods):
        raise InvalidRequest(
            f"{file} has no pod that asks for a GPU: name a list of pods such as openb_pod_list_default.csv"
        )
    return pods


def _asks(line: Line) -> tuple[Ask, ...]:
    devices = line.whole("num_gpu", MAX_DEVICES_PER_ALLOCATION)
    milli = line.whole("gpu_milli", UNITS_PER_DEVICE * MILLI_PER_UNIT)
    units, rest = divmod(milli, MILLI_PER_UNIT)
    if rest:
        raise line.wrong(f"gpu_milli is {milli}: expected whole hundredths of a GPU")
    if not devices and not units:
        return ()
    if not devices or not units or (devices > 1 and units != UNITS_PER_DEVICE):
        raise line.wrong(f"{devices} GPUs of {milli} thousandths: expected a part of one, or whole ones")
    return (Ask(devices, units),)


def _lines(file: Path, columns: Sequence[str]) -> Iterator[Line]:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{file} is no text: byte {error.start} is not UTF-8") from None
    except OSError as error:
        raise InvalidRequest(f"{file} cannot be read: {error.strerror}") from None
    rows = csv.reader(StringIO(text, newline=""), strict=True)
    header: list[str] = []
    try:
        for row in rows:
            if not header:
                header = row
                missing = [column for column in columns if column not in header]
                if missing or len(set(header)) != len(header):
                    raise InvalidRequest(
                        f"{file} line 1: expected the columns {', '.join(columns)}, each once"
                        + (f"; {', '.join(missing)} is missing" if missing else "")
                    )
                continue
            if len(row) != len(header):
                raise InvalidRequest(
                    f"{file} line {rows.line_num}: {len(row)} fields, the first line has {len(header)}: is it cut off?"
                )
            yield Line(file, rows.line_num, dict(zip(header, row, strict=True)))
    except csv.Error as error:
        raise InvalidRequest(f"{file} line {rows.line_num}: {error}") from None
    if not header:
        raise InvalidRequest(f"{file} is empty")
    if not text.endswith("\n"):
        raise InvalidRequest(f"{file} line {rows.line_num}: the file ends within a line: is it cut off?")
