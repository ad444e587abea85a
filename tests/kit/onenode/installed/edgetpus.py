"""Simulated EdgeTPUs of a machine, as the node's container runtime gives them to containers."""

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType

from simgpu.tpu import Tpus
from tests.kit.processes.errors import NodeError

TPUS = MappingProxyType({"0000:03:00.0": Path("/dev/apex_0"), "0000:04:00.0": Path("/dev/apex_1")})
"""The device file of each, by the address that is its id."""

NUMBER = os.makedev(10, 229)
"""Of a device that does nothing when it is opened: /dev/fuse (Linux, admin-guide/devices.txt). Programs that are linked
to the simulated driver do not open it: they are led into the machine's folder."""


def inventory(machine: Path) -> dict[str, object]:
    """Where manager and plugin look for the devices of a machine that has EdgeTPUs, too."""
    return {"inventory": {"sources": ["nvml", "edgetpu"], "root": str(Tpus(machine / "tpus").folder)}}


@contextmanager
def device_files() -> Iterator[None]:
    """A container runtime finds them, which starts no container that is given a device that is not there. Raises
    NodeError where this machine has an EdgeTPU of its own."""
    with ExitStack() as made:
        for path in TPUS.values():
            # What a test run has left that was killed is taken over.
            if not path.exists():
                os.mknod(path, stat.S_IFCHR | 0o666, NUMBER)
            elif path.stat().st_rdev != NUMBER:
                raise NodeError(f"this machine has a {path} of its own: use another one")
            made.callback(path.unlink)
        yield
