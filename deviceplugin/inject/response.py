"""What a container gets with its units: the hook, the way to its share manager, its devices."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from deviceplugin.inject.cdi import qualified_name
from deviceplugin.injection_config import OUR_GPU_KIND, Injection
from edgeshare.contract.accelerator_kind import KINDS
from edgeshare.contract.devices import NVML_PREFIXES, Device
from edgeshare.contract.names import HOOK_DIR_IN_CONTAINER, HOOK_LIBRARY
from edgeshare.kubelet.v1beta1 import deviceplugin_pb2 as api

PRELOAD_FILE = "/etc/ld.so.preload"
"""Read by glibc's loader at the start of every dynamic program (ld.so(8)). A variable would lose to the pod's
own."""

LIBRARY_DIR = "/usr/lib/edgeshare"
"""Where the container finds the hook library, below a folder of its hash."""

VISIBLE_DEVICES = "NVIDIA_VISIBLE_DEVICES"
"""Which GPUs NVIDIA's container runtime puts into a container (NVIDIA Container Toolkit, "Environment
variables")."""


@dataclass(frozen=True)
class Injected:
    """The files on this node that one container mounts."""

    library: Path
    library_hash: str
    preload_file: Path
    socket_folder: Path
    hook_dir: str = HOOK_DIR_IN_CONTAINER
    """Where the container finds that folder."""


def library_in_container(library_hash: str) -> str:
    """The hook library's path as its container sees it."""
    return f"{LIBRARY_DIR}/{library_hash}/{HOOK_LIBRARY}"


def preloaded_library(text: str) -> str:
    """The hash of the library that a preload file names; empty where it names none of ours."""
    found = re.fullmatch(rf"{LIBRARY_DIR}/([0-9a-f]+)/{re.escape(HOOK_LIBRARY)}\n", text)
    return found[1] if found else ""


def preload_text(library_hash: str, hooked: bool) -> str:
    """What the container's preload file says; an empty one loads nothing."""
    return f"{library_in_container(library_hash)}\n" if hooked else ""


def answer(devices: Sequence[Device], files: Injected, config: Injection) -> api.ContainerAllocateResponse:
    """The answer to Allocate. The devices' paths are those that exist on this machine. Raises InvalidRequest
    for a device that cannot be named as the configuration wants it."""
    mounts = [
        (library_in_container(files.library_hash), files.library),
        # A socket can be connected to through a read-only mount: only files, folders and links are kept from
        # writers.
        (files.hook_dir, files.socket_folder),
        (PRELOAD_FILE, files.preload_file),
    ]
    response = api.ContainerAllocateResponse(
        envs=_visible(devices, config),
        mounts=[api.Mount(container_path=inside, host_path=str(outside), read_only=True) for inside, outside in mounts],
    )
    if config.devices == "cdi":
        response.cdi_devices.extend(api.CDIDevice(name=qualified_name(device, config)) for device in devices)
    else:
        nodes = _nodes(devices, config)
        response.devices.extend(api.DeviceSpec(container_path=each, host_path=each, permissions="rw") for each in nodes)
    return response


def _visible(devices: Iterable[Device], config: Injection) -> dict[str, str]:
    gpus = [device for device in devices if KINDS[device.accelerator].visible_variable]
    if not gpus:
        return {}
    if config.devices == "cdi" and config.cdi_gpu_kind != OUR_GPU_KIND:
        # That spec brings the driver's libraries too; whatever the image says, the runtime adds nothing by itself.
        return {VISIBLE_DEVICES: "void"}
    if any(gpu.source == "jetson" for gpu in gpus):
        return {VISIBLE_DEVICES: "all"}
    return {VISIBLE_DEVICES: ",".join(gpu.id for gpu in gpus if gpu.id.startswith(NVML_PREFIXES)) or "void"}


def _nodes(devices: Iterable[Device], config: Injection) -> Iterable[str]:
    # The variable brings GPUs alone. Several devices may have a node in common.
    return {
        node: None
        for device in devices
        for node in device.paths
        if config.devices == "device-nodes" or not KINDS[device.accelerator].visible_variable
    }
