"""Whether this machine has a GPU to test on, and what it is."""

import ctypes
import os
import platform
from dataclasses import dataclass
from pathlib import Path

import pynvml


class NoGpuError(Exception):
    """There is none; the message says what was looked for."""


@dataclass(frozen=True)
class Gpu:
    """The first GPU, and the machine around it."""

    name: str
    memory_mib: int
    driver: str
    cuda: str
    machine: str
    simulated: bool


def find_gpu() -> Gpu:
    """Asks NVML and the driver. Raises NoGpuError."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise NoGpuError(f"no GPU: NVML does not start ({error})") from error
    try:
        if pynvml.nvmlDeviceGetCount() == 0:
            raise NoGpuError("no GPU: NVML lists none")
        _check_driver()
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        version = pynvml.nvmlSystemGetCudaDriverVersion()
        return Gpu(
            name=pynvml.nvmlDeviceGetName(handle),
            memory_mib=pynvml.nvmlDeviceGetMemoryInfo(handle).total >> 20,
            driver=pynvml.nvmlSystemGetDriverVersion(),
            cuda=f"{version // 1000}.{version % 1000 // 10}",
            machine=f"{os.cpu_count()} × {_processor()}, Linux {platform.release()}",
            simulated="SIMGPU_MACHINE" in os.environ,
        )
    finally:
        pynvml.nvmlShutdown()


def _check_driver() -> None:
    """NVML may see a GPU that CUDA cannot use. Asked in a child: this process must stay free to fork."""
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(min(ctypes.CDLL("libcuda.so.1").cuInit(0), 255))
        except OSError:
            os._exit(255)
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code != 0:
        raise NoGpuError(f"no GPU: libcuda.so.1 is not there or cuInit fails (code {code})")


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
