"""Numba compiles a kernel that iterates a map in every thread."""

import warnings
from typing import Any

import numpy as np
from loop import main
from numba import cuda

MIB = 1 << 20
THREADS, BLOCKS, ROUNDS = 256, 1024, 200_000

warnings.simplefilter("ignore")  # of a small grid


@cuda.jit
def iterate(values, rounds):  # type: ignore[no-untyped-def]
    i = cuda.grid(1)
    x = values[i]
    for _ in range(rounds):
        x = np.float32(3.7) * x * (np.float32(1) - x)
    values[i] = x


class Work:
    def __init__(self, kind: str) -> None:
        assert kind == "eager", kind
        self._stream = cuda.stream()
        start = np.linspace(0.1, 0.9, THREADS * BLOCKS, dtype=np.float32)
        self._values = cuda.to_device(start, self._stream)

    def step(self) -> None:
        iterate[BLOCKS, THREADS, self._stream](self._values, ROUNDS)

    def event(self) -> Any:
        event = cuda.event()
        event.record(self._stream)
        return event

    def wait(self, event: Any) -> None:
        event.synchronize()

    def between_ms(self, begin: Any, end: Any) -> float | None:
        return float(cuda.event_elapsed_time(begin, end))

    def take(self, mib: int) -> Any:
        return cuda.device_array(mib * MIB, dtype=np.uint8)

    def refused(self, error: Exception) -> bool:
        return "OUT_OF_MEMORY" in str(error)

    def memory_mib(self) -> tuple[int, int]:
        info = cuda.current_context().get_memory_info()
        return info.free // MIB, info.total // MIB

    def checksum(self) -> float:
        return float(self._values.copy_to_host(stream=self._stream).astype(np.float64).sum())


main(Work)
