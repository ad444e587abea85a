"""The virtual machine and the programs, for Python: only in a process that was started with both preloaded."""

import ctypes
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

from edgeshare.contract.errors import InvalidRequest
from tests.kit.virtual.cases.case import KINDS, MOVES, Attacker, Case, Client
from tests.kit.virtual.cases.paces import PACES

U64, U32 = ctypes.c_uint64, ctypes.c_uint32
COSTS = ("clock", "futex", "io", "mutex", "barrier", "create", "step", "wake", "wake_spread")
ACTIONS = {"kill": 1, "stop": 2}


class Costs(ctypes.Structure):
    _fields_ = [(f"{name}_ns", U32) for name in COSTS]


class Config(ctypes.Structure):
    _fields_ = [
        ("seed", U64),
        ("noise", U32),
        ("atomics", U32),
        ("trace", U32),
        ("budget_s", U32),
        ("delays_most", U64),
        ("costs", Costs),
    ]


class NativeStep(ctypes.Structure):
    _fields_ = [("kind", U32), ("object", U32), ("stream", U32), ("count", U32), ("amount", U64)]


class NativeKernel(ctypes.Structure):
    _fields_ = [("duration_ns", U64), ("function", U32), ("weight", U32), ("blocks", U32)]


class Outcome(ctypes.Structure):
    _fields_ = [
        ("rounds", U64),
        ("launches", U64),
        ("asked_ns", U64),
        ("refused", U64),
        ("held_bytes", ctypes.c_int64),
        ("error", ctypes.c_int32),
        ("error_step", U32),
        ("running", U32),
    ]


class NativeMove(ctypes.Structure):
    _fields_ = [("kind", U32), ("connection", U32), ("packet", U32), ("count", U32), ("amount", U64)]


class Attack(ctypes.Structure):
    _fields_ = [
        ("sent", U64),
        ("connected", U64),
        ("granted", U64),
        ("error", ctypes.c_int32),
        ("error_move", U32),
    ]


class Vt:
    """The virtual machine of this process."""

    def __init__(self, folder: Path) -> None:
        self._library = library = ctypes.CDLL(str(folder / "libvt.so"))
        for name in ("now", "real_ns", "points", "points_of", "switches", "wakes", "barriers", "delays", "hash"):
            getattr(library, f"vt_{name}").restype = U64

    def init(self, case: Case, budget_s: int, trace: bool) -> None:
        """Begins the simulation of a case: seed, noise and costs."""
        pace = PACES[case.pace]
        known = {field.name for field in fields(pace)}
        costs = Costs(**{name: getattr(pace, name) for name, _ in Costs._fields_ if name in known})  # type: ignore[misc]
        config = Config(case.seed, case.noise, case.atomics, trace, budget_s, case.delays_most, costs)
        self._library.vt_init(ctypes.byref(config))
        if case.lost_wake:
            self._library.vt_lose_wake(U64(case.lost_wake))

    def process(self, name: str, scale: int) -> int:
        return int(self._library.vt_process(name.encode(), None, scale))

    def enter(self, process: int, name: str) -> None:
        self._library.vt_enter(process, name.encode())

    def env(self, process: int, name: str, value: str) -> None:
        self._library.vt_env(process, name.encode(), value.encode())

    def sleep(self, ns: int) -> None:
        self._library.vt_sleep(U64(ns))

    def act(self, process: int, action: str) -> None:
        """Kills, stops or continues it now."""
        getattr(self._library, f"vt_{action}")(process)

    def act_at(self, process: int, point: int, action: str, for_ns: int) -> None:
        self._library.vt_at(process, U64(point), ACTIONS[action], U64(for_ns))

    def points_of(self, process: int) -> int:
        return int(self._library.vt_points_of(process))

    def figures(self) -> dict[str, int | str]:
        """What a run came to, so far."""
        names = ("now", "points", "switches", "wakes", "barriers", "delays")
        figures: dict[str, int | str] = {name: getattr(self._library, f"vt_{name}")() for name in names}
        return figures | {"hash": f"{self._library.vt_hash():016x}"}


class Programs:
    """Makes clients; each has a process of the virtual machine."""

    def __init__(self, folder: Path) -> None:
        self._library = library = ctypes.CDLL(str(folder / "libprograms.so"))
        library.client_new.restype = ctypes.c_void_p
        library.client_outcome.restype = Outcome
        library.attacker_new.restype = ctypes.c_void_p
        library.attacker_outcome.restype = Attack

    def start(
        self,
        name: str,
        client: Client,
        root: Path,
        hook: Path | None,
        driver: Path,
        launch_ns: int,
        prepare: Callable[[int], None],
    ) -> "Running":
        """Starts a client in a folder of its own; ``prepare`` gets its process first. Raises InvalidRequest."""
        root.mkdir()
        library = self._library
        own = str(hook).encode() if hook else None
        made = library.client_new(name.encode(), str(root).encode(), own, str(driver).encode(), U64(launch_ns))
        if not made:
            raise InvalidRequest(f"client {name} cannot be made of {hook} and {driver}: are both built?")
        handle = ctypes.c_void_p(made)
        for index, kernel in enumerate(client.program.kernels):
            native = NativeKernel(kernel.duration_ns, kernel.function, kernel.weight, kernel.blocks)
            library.client_kernel(handle, index, native)
        for thread in client.program.threads:
            steps = (NativeStep * len(thread.steps))(
                *(NativeStep(1 + KINDS.index(s.kind), s.object, s.stream, s.count, s.amount) for s in thread.steps)
            )
            library.client_thread(handle, steps, len(steps), thread.again)
        running = Running(library, handle)
        prepare(running.process)
        library.client_start(handle, U64(client.delay_ms * 1_000_000))
        return running

    def attack(self, name: str, attacker: Attacker, socket: Path) -> "Attacking":
        """Starts a hostile client of the allocation whose socket this is. Raises InvalidRequest."""
        library = self._library
        made = library.attacker_new(name.encode(), str(socket).encode())
        if not made:
            raise InvalidRequest(f"attacker {name} cannot be made: there is no memory")
        handle = ctypes.c_void_p(made)
        for packet in map(bytes.fromhex, attacker.packets):
            library.attacker_packet(handle, packet, ctypes.c_size_t(len(packet)))
        moves = (NativeMove * len(attacker.moves))(
            *(NativeMove(1 + MOVES.index(m.kind), m.connection, m.packet, m.count, m.amount) for m in attacker.moves)
        )
        library.attacker_start(handle, moves, len(moves), attacker.again, U64(attacker.delay_ms * 1_000_000))
        return Attacking(library, handle)


class Running:
    """A client that was started."""

    def __init__(self, library: ctypes.CDLL, handle: ctypes.c_void_p) -> None:
        self._library = library
        self._handle = handle
        self.process = int(library.client_process(handle))

    def outcome(self) -> dict[str, int]:
        outcome = self._library.client_outcome(self._handle)
        return {name: int(getattr(outcome, name)) for name, *_ in Outcome._fields_}

    def rounds(self) -> int:
        """How often its threads have come to their ends of a round."""
        return int(self._library.client_outcome(self._handle).rounds)


class Attacking:
    """An attacker that was started."""

    def __init__(self, library: ctypes.CDLL, handle: ctypes.c_void_p) -> None:
        self._library = library
        self._handle = handle

    def outcome(self) -> dict[str, int]:
        outcome = self._library.attacker_outcome(self._handle)
        return {name: int(getattr(outcome, name)) for name, *_ in Attack._fields_}
