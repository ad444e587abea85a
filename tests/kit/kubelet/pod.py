"""What a kubelet knows of a pod, how one fails there, and what its containers were given."""

import random
from dataclasses import dataclass, field

from edgeshare.kubelet.v1beta1 import deviceplugin_pb2 as api


class AdmissionError(Exception):
    """A pod that failed at its admission, with what the plugin said."""


class StartError(Exception):
    """A container that was not started, with what the plugin said."""


@dataclass
class Pod:
    """What a kubelet knows of a pod: units asked for by each container, in their order."""

    name: str
    containers: dict[str, int]
    init: dict[str, int] = field(default_factory=dict)
    namespace: str = "team"
    uid: str = field(default_factory=lambda: f"{random.getrandbits(128):032x}")


def folder_of(answer: api.ContainerAllocateResponse) -> str:
    """The allocation's id: the last part of the mounted socket folder's path."""
    (mount,) = [mount for mount in answer.mounts if mount.container_path == "/run/edgeshare"]
    return mount.host_path.rpartition("/")[2]
