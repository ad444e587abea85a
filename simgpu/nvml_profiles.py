"""What NVML answers on other machines than those that the simulated library is modelled on: profiles of platforms, and
of versions of the driver. What no source says of a platform is refused in its profile: that is the harder case.

Sources: NVML: NVIDIA, "NVML API Reference Guide". WSL: NVIDIA, "CUDA on WSL User Guide", what is not supported yet. The
others are threads on GitHub."""

from collections.abc import Mapping
from dataclasses import dataclass, field

ANSWERS = {
    "as-ever": 0,
    "not-supported": 3,
    "no-permission": 4,
    "timeout": 10,
    "not-exported": 13,
    "lost": 15,
    "unknown": 999,
    "no-memory": 10001,
    "wide": 10002,
}
"""What a function can be told to answer → its number in the machine (``plan.h``). The last two are of the functions
that list processes: these come without the memory that they have, or in the larger structure of some drivers."""

REFUSALS = ("not-supported", "no-permission", "unknown", "timeout", "lost", "not-exported")
"""The answers that tell nothing."""

SINCE = {
    # XuehaiPan/nvitop, pull requests 30 and 89, which name the commits of nvidia-settings that brought them.
    "nvmlDeviceGetMemoryInfo_v2": 510,
    "nvmlDeviceGetComputeRunningProcesses_v3": 510,
    "nvmlDeviceGetGraphicsRunningProcesses_v3": 510,
    "nvmlDeviceGetMPSComputeRunningProcesses_v3": 510,
    "nvmlDeviceGetMemoryBusWidth": 510,  # at the latest: 470 has none
}
"""Function → the release of the driver that brought it, of those that NVIDIA's library of 470.256.02 does not export.
That of 535.261.03 exports all that the simulated one does."""

THIRD = tuple(name for name in SINCE if name.endswith("_v3"))
PROCESSES = ("nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetComputeRunningProcesses_v3")
EVENTS = (
    "nvmlEventSetCreate",
    "nvmlEventSetWait_v2",
    "nvmlDeviceGetSupportedEventTypes",
    "nvmlDeviceRegisterEvents",
)
ECC = (
    "nvmlDeviceGetTotalEccErrors",
    "nvmlDeviceGetDetailedEccErrors",
    "nvmlDeviceGetEccMode",
    "nvmlDeviceGetRemappedRows",
)
"""Not on a board without ECC (NVML, of each)."""
SENSORS = (
    "nvmlDeviceGetTemperature",
    "nvmlDeviceGetPowerUsage",
    "nvmlDeviceGetTotalEnergyConsumption",
)


@dataclass(frozen=True)
class NvmlProfile:
    """What functions of NVML answer on a kind of machine; all that are not named answer as ever."""

    name: str
    answers: Mapping[str, str] = field(default_factory=dict)
    """Function → one of ANSWERS."""
    cuda_version: str = ""
    """Of the driver; empty: any."""
    driver_version: str = ""
    """Empty: the one that brought the CUDA version."""


def _of_driver(release: int, cuda_version: str, driver_version: str = "", **answers: str) -> NvmlProfile:
    missing = {name: "not-exported" for name, since in SINCE.items() if since > release}
    return NvmlProfile(f"driver-{driver_version or release}", missing | answers, cuda_version, driver_version)


def _refusing(*functions: str) -> dict[str, str]:
    return dict.fromkeys(functions, "not-supported")


NVML_PROFILES = {
    profile.name: profile
    for profile in (
        NvmlProfile("datacenter"),
        # NVML: rows are remapped and MIG is there on boards for data centres from Ampere on.
        NvmlProfile("geforce", _refusing(*ECC, "nvmlDeviceGetMigMode")),
        # NVIDIA, "Virtual GPU Software Management SDK User Guide", chapter 3: engine usage is told in a guest, physical
        # properties of the GPU are not. Of processes, events and energy no source says anything.
        NvmlProfile("vgpu", _refusing(*SENSORS, *ECC, *EVENTS, *PROCESSES, "nvmlDeviceGetMigMode")),
        NvmlProfile(
            "wsl2",
            _refusing(
                "nvmlDeviceGetMinorNumber",  # NVIDIA/k8s-device-plugin, issue 332
                *ECC,  # WSL; NVIDIA/nvidia-docker, issue 1542, has the rows
                "nvmlDeviceGetMigMode",  # the same issue
                "nvmlDeviceGetUtilizationRates",  # WSL; NVIDIA/cudf, issue 9955
                "nvmlDeviceGetProcessUtilization",
                *EVENTS,
                "nvmlDeviceGetTotalEnergyConsumption",
            )
            # XuehaiPan/nvitop, pull request 30: driver 516.59
            | {"nvmlDeviceGetMemoryInfo_v2": "unknown"}
            # Syllo/nvtop, issue 432: driver 591.44; older ones list none at all (WSL)
            | dict.fromkeys(PROCESSES, "no-memory"),
        ),
        # Orin, driver 540.4.0. ultralytics/ultralytics, pull request 20680: nvidia-smi's "N/A" and "Not Supported".
        NvmlProfile(
            "jetson",
            _refusing(
                "nvmlDeviceGetMemoryInfo",
                "nvmlDeviceGetMemoryInfo_v2",
                "nvmlDeviceGetPciInfo_v3",
                "nvmlDeviceGetUtilizationRates",
                "nvmlDeviceGetMigMode",
                *SENSORS,
                *ECC,
                "nvmlDeviceGetMinorNumber",
                "nvmlDeviceGetProcessUtilization",
                *EVENTS,
                *PROCESSES,
            ),
            "12.6",
            "540.4.0",
        ),
        _of_driver(470, "11.4"),
        # Processes in a larger structure, without another name for it: XuehaiPan/nvitop, pull request 79;
        # NVIDIA/go-nvml, issue 75. From 535.43.02 on, until 535.98 took the third version away again for some weeks
        # (nvitop, pull request 89).
        _of_driver(535, "12.2", "535.54.03", **dict.fromkeys(THIRD, "wide")),
        _of_driver(535, "12.2", "535.98", **dict.fromkeys(THIRD, "not-exported")),
        _of_driver(535, "12.2"),
        _of_driver(550, "12.4"),
        _of_driver(580, "13.0"),
    )
}
