"""A simulated machine: read and broken from Python.

What was *executed* is the truth here, taken from the machine's own log, whatever anybody else reports.
"""

import os
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from edgeshare.contract.errors import InvalidRequest, NotFound, Unavailable
from simgpu.native import load
from simgpu.nvml_profiles import ANSWERS
from simgpu.paces import Pace
from simgpu.readings import Gpu, Interval, Process

DEFAULT_DIRECTORY = Path("/dev/shm/simgpu")
SCHEDULING = ("fifo", "timeslice")
STATUS = {
    1: "there is no machine in {directory}: make one with `edgeshare simgpu create --machine {directory}`",
    2: "{directory} holds a machine of another version of edgeshare: destroy it and make it again",
    3: "the machine in {directory} cannot be opened: look at its permissions",
}
FATAL_XIDS = {48: 214, 62: 719, 74: 719, 79: 719, 94: 214, 95: 214, 119: 719}
"""XIDs that end every context of the GPU → the CUresult that its calls return (NVIDIA, "XID Errors"):
double-bit, contained and uncontained ECC errors, micro-controller halt, NVLink error, off the bus, GSP timeout."""
LOST_XID = 79
XID_LIMIT = 1024
LOST_ERROR = 719
ECC_ERROR = 214
FAULT_XID, FAULT_ECC_SINGLE, FAULT_ECC_DOUBLE = 1, 2, 3
TEMPERATURE_LIMIT_C = 200
DEVICE_FILES = "dev"
"""In a machine's directory: what stands for the GPUs' files of a host's ``/dev``. They are empty, and nothing opens
them."""


def device_file(directory: Path, gpu: int) -> Path:
    """What stands for a GPU's ``/dev/nvidiaN``."""
    return directory / DEVICE_FILES / f"nvidia{gpu}"


class Machine:
    """An open machine. Reading changes nothing but this: every look brings the simulation up to now.

    ``directory`` defaults to ``SIMGPU_MACHINE`` and then to ``/dev/shm/simgpu``. Raises NotFound where it holds
    no machine, Unavailable where it cannot be opened.
    """

    def __init__(self, directory: Path | None = None) -> None:
        chosen = directory or Path(os.environ.get("SIMGPU_MACHINE") or DEFAULT_DIRECTORY)
        self._ffi, self._library = load()
        status = self._ffi.new("int *")
        # Never closed: closing the lock file would drop the record locks of a driver in this very process.
        self._observer = self._library.simgpu_open(str(chosen).encode(), status)
        if not self._observer:
            error = NotFound if status[0] == 1 else Unavailable
            raise error(STATUS.get(status[0], STATUS[3]).format(directory=chosen))
        self._shared = self._library.simgpu_shared(self._observer)
        self.directory = chosen

    @property
    def scheduling(self) -> str:
        return SCHEDULING[self._shared.scheduling]

    @property
    def pace(self) -> Pace | None:
        """What calls and switches of contexts cost; None: nothing."""
        name = self._text(self._shared.pace.name)
        figures = {field.name: int(getattr(self._shared.pace, field.name)) for field in fields(Pace)[1:]}
        return Pace(name, **figures) if name else None

    @property
    def overlap(self) -> bool:
        """Whether the GPUs' engines overlap."""
        return bool(self._shared.overlap)

    @property
    def driver_version(self) -> str:
        return self._text(self._shared.driver_version)

    @property
    def nvml(self) -> str:
        """The name of NVML's profile; empty: it has none."""
        return self._text(self._shared.nvml.name)

    @property
    def nvml_answers(self) -> dict[str, str]:
        """Function of NVML → what it answers, of those that do not answer as ever."""
        words = {number: word for word, number in ANSWERS.items()}
        told = [self._shared.nvml.answers[place] for place in range(self._shared.nvml.count)]
        return {self._text(each.function): words[each.answer] for each in told if each.answer}

    @property
    def gpu_count(self) -> int:
        return int(self._shared.gpu_count)

    def look(self) -> int:
        """Brings every GPU up to now. Returns that time (CLOCK_MONOTONIC, ns)."""
        return int(self._library.simgpu_look(self._observer))

    def gpus(self) -> list[Gpu]:
        """The GPUs, now."""
        self.look()
        return [self._gpu(index) for index in range(self.gpu_count)]

    def _gpu(self, index: int) -> Gpu:
        gpu = self._shared.gpus[index]
        contexts = [gpu.contexts[context] for context in self._contexts(index)]
        faults = range(max(0, gpu.fault_count - self._library.SIMGPU_FAULTS), gpu.fault_count)
        kept = [gpu.faults[number % self._library.SIMGPU_FAULTS] for number in faults]
        return Gpu(
            index=index,
            uuid=self._text(gpu.uuid),
            name=self._text(gpu.model.name),
            memory_bytes=int(gpu.model.memory_bytes),
            used_bytes=int(gpu.model.reserved_bytes + gpu.detached_bytes)
            + sum(int(context.memory_bytes) for context in contexts),
            busy_ns=int(gpu.busy_ns),
            queued=sum(int(context.tail - context.completed) for context in contexts if context.state == 1),
            lost=bool(gpu.lost),
            xids=tuple(int(fault.xid) for fault in kept if fault.kind == FAULT_XID),
            ecc_single=int(gpu.ecc_single),
            ecc_double=int(gpu.ecc_double),
            remap_pending=bool(gpu.remap_pending),
            remap_failed=bool(gpu.remap_failed),
            temperature_c=int(gpu.temperature_c),
        )

    def _contexts(self, gpu: int) -> Iterator[int]:
        """Indices of a GPU's contexts that are not free."""
        live = self._shared.gpus[gpu].live
        for word in range(4):
            rest = int(live[word])
            while rest:
                yield word * 64 + (rest & -rest).bit_length() - 1
                rest &= rest - 1

    def processes(self) -> list[Process]:
        """Every process that initialised the driver and is not forgotten, in the order of their starts."""
        self.look()
        memory = self._memory()
        found = [
            self._process(slot, memory) for slot in range(self._shared.slots) if self._shared.processes[slot].state != 0
        ]
        return sorted(found, key=lambda process: process.id)

    def _process(self, slot: int, memory: dict[tuple[int, int], int]) -> Process:
        process = self._shared.processes[slot]
        alive = process.state == 1
        gpus = range(self.gpu_count)
        executed_ns, entries, events = process.executed_ns, process.entries, process.events
        return Process(
            id=process.id,
            slot=slot,
            pid=(self._library.simgpu_pid(self._observer, slot) if alive else 0) or process.pid,
            tag=self._text(process.tag),
            name=self._text(process.name),
            alive=alive,
            start_ns=process.start_ns,
            end_ns=process.end_ns,
            executed_ns=tuple([executed_ns[gpu] for gpu in gpus]),
            entries=tuple([entries[gpu] for gpu in gpus]),
            events=tuple([events[gpu] for gpu in gpus]),
            memory_bytes=tuple([memory.get((slot, gpu), 0) for gpu in gpus]),
        )

    def _memory(self) -> dict[tuple[int, int], int]:
        """(slot, GPU) → bytes."""
        memory: dict[tuple[int, int], int] = {}
        processes, gpus = self._shared.processes, range(self.gpu_count)
        for slot in range(self._shared.slots):
            own = processes[slot].memory_bytes
            for gpu in gpus:
                memory[slot, gpu] = own[gpu]
        for index in range(self._shared.export_slots):
            entry = self._shared.exports[index]
            if entry.kind == self._library.SIMGPU_EXPORT_MEMORY:
                key = int(entry.charged), int(entry.gpu)
                memory[key] = memory.get(key, 0) + int(entry.bytes)
        for gpu in gpus:
            contexts = self._shared.gpus[gpu].contexts
            for index in self._contexts(gpu):
                context = contexts[index]
                key = context.process, gpu
                memory[key] = memory.get(key, 0) + context.memory_bytes
        return memory

    def executed_ns(self, gpu: int | None = None) -> dict[str, int]:
        """Tag → GPU time used so far by all processes of that tag, dead ones too, on one GPU or on all."""
        total: dict[str, int] = {}
        for process in self.processes():
            used = sum(process.executed_ns) if gpu is None else process.executed_ns[gpu]
            total[process.tag] = total.get(process.tag, 0) + used
        return total

    def cursor(self, gpu: int) -> int:
        """The place in a GPU's log after what has been logged so far."""
        self.look()
        return int(self._shared.gpus[gpu].log_count)

    def log(self, gpu: int, since: int = 0) -> tuple[list[Interval], int]:
        """What a GPU has executed since a cursor (0: since the start) and the next cursor.

        The interval that runs now is not in it until it ends. A log keeps the last 131,072 intervals. Raises
        NotFound where some since the cursor are already gone.
        """
        self.look()
        log_size = int(self._library.SIMGPU_LOG)
        count = int(self._shared.gpus[gpu].log_count)
        first = max(since, count - log_size)
        log = self._shared.gpus[gpu].log
        found = [Interval.of(log[number % log_size]) for number in range(first, count)]
        # What was written over while it was being read is the oldest part.
        oldest = int(self._shared.gpus[gpu].log_count) - log_size
        if 0 < since < oldest:
            raise NotFound(f"GPU {gpu}'s log has lost {oldest - since} intervals: read it more often")
        return found[max(0, oldest - first) :], count

    def tags(self) -> dict[int, str]:
        """Process id → tag, for reading a log."""
        return {process.id: process.tag for process in self.processes()}

    def inject_xid(self, gpu: int, xid: int) -> None:
        """Reports an XID: fatal ones end the GPU's contexts, 79 the GPU. Raises InvalidRequest, NotFound."""
        if not 0 < xid <= XID_LIMIT:
            raise InvalidRequest(f"{xid} is no XID: give 1 to {XID_LIMIT}")
        self._inject(gpu, FAULT_XID, xid, FATAL_XIDS.get(xid, 0), xid == LOST_XID)

    def inject_lost(self, gpu: int) -> None:
        """The GPU falls off the bus. Raises NotFound."""
        self._inject(gpu, FAULT_XID, LOST_XID, LOST_ERROR, True)

    def inject_ecc(self, gpu: int, double: bool = False) -> None:
        """An ECC error: single-bit ones are corrected, double-bit ones end all contexts. Raises NotFound."""
        self._inject(gpu, FAULT_ECC_DOUBLE if double else FAULT_ECC_SINGLE, 0, ECC_ERROR if double else 0, False)

    def inject_remap(self, gpu: int, failed: bool = False) -> None:
        """A row of the GPU's memory waits for a reset to be remapped, or could not be. Raises NotFound."""
        self._check(gpu)
        self._library.simgpu_remap(self._observer, gpu, failed)

    def set_temperature(self, gpu: int, temperature_c: int) -> None:
        """Says how hot the GPU is, until it is said again; 0: as its load makes it. Raises InvalidRequest, NotFound."""
        self._check(gpu)
        if not 0 <= temperature_c <= TEMPERATURE_LIMIT_C:
            raise InvalidRequest(f"{temperature_c} °C is no temperature of a GPU: give 0 to {TEMPERATURE_LIMIT_C}")
        self._library.simgpu_set_temperature(self._observer, gpu, temperature_c)

    def set_silent(self, gpu: int, silent: bool) -> None:
        """Calls of NVML about the GPU do not come back, as when its firmware hangs, until they may. Raises NotFound."""
        self._check(gpu)
        self._library.simgpu_set_silent(self._observer, gpu, silent)

    def set_nvml_answer(self, function: str, answer: str) -> None:
        """What a function of NVML answers from now on, as ANSWERS calls it. Raises InvalidRequest."""
        if answer not in ANSWERS:
            raise InvalidRequest(f"NVML answers nothing called {answer!r}: choose one of {', '.join(ANSWERS)}")
        if self._library.simgpu_set_answer(self._observer, function.encode(), ANSWERS[answer]):
            raise InvalidRequest(f"{function}: the machine keeps no more answers of NVML's, or none of so long a name")

    def remove_file(self, gpu: int) -> None:
        """The GPU's device file goes. Raises NotFound."""
        self._check(gpu)
        device_file(self.directory, gpu).unlink(missing_ok=True)

    def restore_file(self, gpu: int) -> None:
        """The GPU's device file comes back. Raises NotFound."""
        self._check(gpu)
        device_file(self.directory, gpu).touch()

    def reset(self, gpu: int) -> None:
        """Resets the GPU: one that was lost is back, and counts since the driver's start begin anew. Programs that had
        a context on it have to start again. Raises NotFound."""
        self._check(gpu)
        self._library.simgpu_reset(self._observer, gpu, LOST_ERROR)

    def _inject(self, gpu: int, kind: int, xid: int, error: int, lost: bool) -> None:
        self._check(gpu)
        self._library.simgpu_inject(self._observer, gpu, kind, xid, error, lost)

    def _check(self, gpu: int) -> None:
        if not 0 <= gpu < self.gpu_count:
            raise NotFound(f"there is no GPU {gpu}: the machine has {self.gpu_count}, numbered from 0")

    def _text(self, value: Any) -> str:
        text = self._ffi.string(value)
        assert isinstance(text, bytes)
        return text.decode(errors="replace")
