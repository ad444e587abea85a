"""CuPy multiplies matrices."""

from typing import Any

import cupy
import numpy as np
from loop import main

MIB = 1 << 20
WIDTH = 4096


class Work:
    def __init__(self, kind: str) -> None:
        assert kind == "eager", kind
        random = np.random.default_rng(1)
        self._matrix = cupy.asarray(random.standard_normal((WIDTH, WIDTH), dtype=np.float32) / WIDTH**0.5)
        self._state = cupy.asarray(random.standard_normal((WIDTH, WIDTH), dtype=np.float32))

    def step(self) -> None:
        self._state = cupy.tanh(self._matrix @ self._state)

    def event(self) -> Any:
        event = cupy.cuda.Event()
        event.record()
        return event

    def wait(self, event: Any) -> None:
        event.synchronize()

    def between_ms(self, begin: Any, end: Any) -> float | None:
        return float(cupy.cuda.get_elapsed_time(begin, end))

    def take(self, mib: int) -> Any:
        return cupy.empty(mib * MIB, dtype=cupy.uint8)

    def refused(self, error: Exception) -> bool:
        return isinstance(error, cupy.cuda.memory.OutOfMemoryError)

    def memory_mib(self) -> tuple[int, int]:
        free, total = cupy.cuda.runtime.memGetInfo()
        return free // MIB, total // MIB

    def checksum(self) -> float:
        return float(self._state.sum())


main(Work)
