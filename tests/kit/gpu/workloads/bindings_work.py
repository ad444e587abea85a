"""NVIDIA's Python bindings and nothing else: kernels of 1 ms, a step each; ``graph``: ten of 100 µs in a graph."""

import ctypes
from pathlib import Path
from typing import Any

from cuda.bindings import driver as cu
from loop import main

MIB = 1 << 20


class OutOfMemoryError(Exception):
    """The driver's refusal."""


def call(answer: tuple[Any, ...]) -> Any:
    """The value of a call that must have succeeded."""
    if answer[0] == cu.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
        raise OutOfMemoryError(answer[0].name)
    assert answer[0] == cu.CUresult.CUDA_SUCCESS, answer[0].name
    return answer[1] if len(answer) == 2 else answer[1:]


class Work:
    def __init__(self, kind: str) -> None:
        call(cu.cuInit(0))
        call(cu.cuCtxSetCurrent(call(cu.cuDevicePrimaryCtxRetain(0))))
        image = Path(__file__).with_name("spin.ptx").read_bytes() + b"\0"
        self._spin = call(cu.cuModuleGetFunction(call(cu.cuModuleLoadData(image)), b"spin"))
        self._stream = call(cu.cuStreamCreate(cu.CUstream_flags.CU_STREAM_NON_BLOCKING))
        self._graph = self._captured() if kind == "graph" else None
        self._memory = call(cu.cuMemAlloc(MIB))
        call(cu.cuMemsetD8(self._memory, 1, MIB))

    def _captured(self) -> Any:
        call(cu.cuStreamBeginCapture(self._stream, cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))
        for _ in range(10):
            self._launch(100_000)
        return call(cu.cuGraphInstantiate(call(cu.cuStreamEndCapture(self._stream)), 0))

    def _launch(self, ns: int) -> None:
        call(cu.cuLaunchKernel(self._spin, 1, 1, 1, 1, 1, 1, 0, self._stream, ((ns,), (ctypes.c_uint64,)), 0))

    def step(self) -> None:
        if self._graph is None:
            self._launch(1_000_000)
        else:
            call(cu.cuGraphLaunch(self._graph, self._stream))

    def event(self) -> Any:
        event = call(cu.cuEventCreate(0))
        call(cu.cuEventRecord(event, self._stream))
        return event

    def wait(self, event: Any) -> None:
        call(cu.cuEventSynchronize(event))

    def between_ms(self, begin: Any, end: Any) -> float | None:
        between = float(call(cu.cuEventElapsedTime(begin, end)))
        for event in (begin, end):
            call(cu.cuEventDestroy(event))
        return between

    def take(self, mib: int) -> Any:
        return call(cu.cuMemAlloc(mib * MIB))

    def refused(self, error: Exception) -> bool:
        return isinstance(error, OutOfMemoryError)

    def memory_mib(self) -> tuple[int, int]:
        free, total = call(cu.cuMemGetInfo())
        return free // MIB, total // MIB

    def checksum(self) -> float:
        back = bytearray(MIB)
        call(cu.cuMemcpyDtoH(back, self._memory, MIB))
        return float(sum(back))


main(Work)
