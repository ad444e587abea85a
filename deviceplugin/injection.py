"""What a container gets with its units: the hook, the way to its share manager, its GPU."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from edgeshare.devices import Device
from edgeshare.kubelet.v1beta1 import deviceplugin_pb2 as api
from edgeshare.names import HOOK_DIR_IN_CONTAINER, HOOK_LIBRARY

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


def library_in_container(library_hash: str) -> str:
    """The hook library's path as its container sees it."""
    return f"{LIBRARY_DIR}/{library_hash}/{HOOK_LIBRARY}"


def preload_text(library_hash: str, hooked: bool) -> str:
    """What the container's preload file says; an empty one loads nothing."""
    return f"{library_in_container(library_hash)}\n" if hooked else ""


def answer(devices: Iterable[Device], files: Injected, nodes: Iterable[str]) -> api.ContainerAllocateResponse:
    """The answer to Allocate. ``nodes`` are the device nodes of these devices that exist on this machine."""
    mounts = (
        (PRELOAD_FILE, files.preload_file),
        (library_in_container(files.library_hash), files.library),
        # A socket can be connected to through a read-only mount: only files, folders and links are kept from
        # writers.
        (HOOK_DIR_IN_CONTAINER, files.socket_folder),
    )
    return api.ContainerAllocateResponse(
        envs={VISIBLE_DEVICES: ",".join(device.id for device in devices)},
        mounts=[api.Mount(container_path=inside, host_path=str(outside), read_only=True) for inside, outside in mounts],
        devices=[api.DeviceSpec(container_path=node, host_path=node, permissions="rw") for node in nodes],
    )
