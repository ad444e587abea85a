"""What was seen of a node: plain values, of which the rules say what is wrong."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from edgeshare.contract.devices import Device

TAKES_VARIABLES = "accept-nvidia-visible-devices-envvar-when-unprivileged"
"""The key of NVIDIA's toolkit for that (its config.toml); true where it is not said."""


class Socket(StrEnum):
    """What somebody finds who connects to a socket."""

    SERVED = "served"
    REFUSED = "refused"
    """It is there, and whoever made it is not."""
    FORBIDDEN = "forbidden"
    ABSENT = "absent"


@dataclass(frozen=True)
class Devices:
    """What the inventories find, as the device plugin does."""

    found: tuple[Device, ...]
    troubles: tuple[str, ...]
    """Why something that is there cannot be listed."""
    refused: tuple[str, ...]
    """What the driver refuses, and what is lacking for it."""


@dataclass(frozen=True)
class Kubelet:
    """A kubelet's sockets, by path; none where no kubelet has a folder."""

    sockets: tuple[tuple[str, Socket], ...]


@dataclass(frozen=True)
class OtherPlugins:
    """What other device plugins of the node hand out."""

    ids: Mapping[str, Collection[str]]
    """The ids of the devices of each of their resources."""
    error: str = ""
    """Why that is not known."""


@dataclass(frozen=True)
class Runtime:
    """A container runtime's configuration."""

    path: str
    error: str = ""
    """Why it cannot be read."""
    handlers: tuple[str, ...] = ()
    """The names that a RuntimeClass may use."""
    default: str = ""
    with_cdi: bool = True


@dataclass(frozen=True)
class Toolkit:
    """NVIDIA's container toolkit."""

    path: str
    error: str = ""
    takes_variables: bool = True
    """Whether a container without privileges gets the GPUs that its NVIDIA_VISIBLE_DEVICES names; where not, NVIDIA's
    runtime refuses to make one whose variable names any (NVIDIA/k8s-device-plugin, issue 203)."""


@dataclass(frozen=True)
class Hook:
    """The hook library, and the folder from which containers load it."""

    library: str
    error: str
    """Why no program can load it here; empty: it can be loaded."""
    c_library: tuple[str, str]
    """Name and version of this machine's; empty where they are not known."""
    folder: str
    """What there is of the state folder: itself, or the nearest folder above it."""
    without_exec: bool
    writable: bool


@dataclass(frozen=True)
class Board:
    """What small boards have otherwise."""

    swap_kib: int
    memory_cgroup: bool


@dataclass(frozen=True)
class Node:
    """All that was seen of a node. Where the board cannot be read, ``unreadable`` says so in a line."""

    as_root: bool
    devices: Devices
    kubelet: Kubelet
    other_plugins: OtherPlugins
    """Asked for where there are devices and a kubelet."""
    runtimes: tuple[Runtime, ...]
    toolkit: Toolkit | None
    hook: Hook
    manager: Socket
    board: Board
    unreadable: str = ""
