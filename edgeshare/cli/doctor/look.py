"""Looks at a node: reads, connects, and has one program load the hook. Changes nothing."""

import asyncio
import errno
import logging
import os
import platform
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from edgeshare.cli.doctor.facts import Board, Devices, Hook, Kubelet, Node, OtherPlugins, Socket
from edgeshare.cli.doctor.runtimes import read_runtimes, read_toolkit
from edgeshare.cli.run import hook_library
from edgeshare.contract.errors import Unavailable
from edgeshare.contract.names import (
    GPU_PERCENT,
    KUBELET_DIR,
    KUBELET_SOCKET,
    PLUGINS_DIR,
    POD_RESOURCES_SOCKET,
    STATUS_SOCKET,
)
from edgeshare.inventory.config import InventoryConfig
from edgeshare.inventory.sources import Inventories, sources_of
from edgeshare.inventory.tree import Tree
from edgeshare.kubelet.podresources import PodResources

PATIENCE_S = 5
"""For what takes milliseconds where all is well."""

KUBELET_SOCKETS = (f"{PLUGINS_DIR}/{KUBELET_SOCKET}", POD_RESOURCES_SOCKET)

KUBELET_DIRS = (
    KUBELET_DIR,
    "/var/lib/k0s/kubelet",
    "/var/snap/microk8s/common/var/lib/kubelet",
    "/var/lib/rancher/k3s/agent/kubelet",
)
"""Where kubelets have their folders: by default; k0s' (its page "k0s directories"); microk8s' (``--root-dir`` in its
``args/kubelet``); k3s' before 0.10 and without root (k3s-io/k3s, issues 840 and 1358)."""


def examine(root: Path, kubelet_dir: Path, runtime_dir: Path, state_dir: Path) -> Node:
    """What is seen below the root of a node, the folders' paths being its own."""
    tree = Tree(root)
    try:
        board, unreadable = _board(tree), ""
    except Unavailable as error:
        board, unreadable = Board(0, memory_cgroup=True), str(error)
    devices, kubelet = _devices(root), _kubelet(root, kubelet_dir)
    return Node(
        as_root=os.geteuid() == 0,
        devices=devices,
        kubelet=kubelet,
        other_plugins=_other_plugins(root, devices, kubelet),
        runtimes=tuple(read_runtimes(tree)),
        toolkit=read_toolkit(tree),
        hook=_hook(root, state_dir),
        manager=_asked(_below(root, runtime_dir) / STATUS_SOCKET),
        board=board,
        unreadable=unreadable,
    )


def _below(root: Path, path: Path) -> Path:
    return root / str(path).lstrip("/")


class Lines(logging.Handler):
    """Keeps what is logged, a line each."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


@contextmanager
def _said_of(name: str) -> Iterator[list[str]]:
    """What is logged meanwhile by a part, and nowhere else."""
    lines, logger = Lines(), logging.getLogger(name)
    propagated, logger.propagate = logger.propagate, False
    logger.addHandler(lines)
    try:
        yield lines.said
    finally:
        logger.removeHandler(lines)
        logger.propagate = propagated


def _devices(root: Path) -> Devices:
    sources = sources_of(InventoryConfig(root=root))
    with _said_of("edgeshare.inventory") as refused, closing(Inventories(sources)) as inventories:
        found = inventories.devices()
        return Devices(tuple(found), inventories.troubles, tuple(refused))


def _kubelet(root: Path, folder: Path) -> Kubelet:
    folders = [each for each in (folder, *map(Path, KUBELET_DIRS)) if _below(root, each).is_dir()]
    return Kubelet(tuple(_socket(root, folders, name) for name in KUBELET_SOCKETS if folders))


def _socket(root: Path, folders: Sequence[Path], name: str) -> tuple[str, Socket]:
    """Where somebody has it; where nobody has, in the first folder. A kubelet's two are not always in one folder: its
    root folder can be chosen, and where device plugins meet it cannot."""
    asked = [(str(folder / name), _asked(_below(root, folder) / name)) for folder in folders]
    return next((each for each in asked if each[1] in (Socket.SERVED, Socket.FORBIDDEN)), asked[0])


def _asked(path: Path) -> Socket:
    with socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(PATIENCE_S)
        try:
            asking.connect(str(path))
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                return Socket.ABSENT
            return Socket.FORBIDDEN if error.errno in (errno.EACCES, errno.EPERM) else Socket.REFUSED
    return Socket.SERVED


def _other_plugins(root: Path, devices: Devices, kubelet: Kubelet) -> OtherPlugins:
    """As the kubelet tells, where there is a device that another one may have, too."""
    served = [path for path, socket in kubelet.sockets if socket is Socket.SERVED]
    asked = [path for path in served if path.endswith(POD_RESOURCES_SOCKET)]
    if not asked or not devices.found:
        return OtherPlugins({})
    try:
        return OtherPlugins(asyncio.run(PodResources(_below(root, Path(asked[0])), GPU_PERCENT).others()))
    except Unavailable as error:
        return OtherPlugins({}, str(error))


def _hook(root: Path, state_dir: Path) -> Hook:
    library, error = "", ""
    try:
        library = str(hook_library())
        error = _load(library)
    except Unavailable as unavailable:
        error = str(unavailable)
    there = next(each for each in (state_dir, *state_dir.parents) if _below(root, each).is_dir())
    folder = _below(root, there)
    return Hook(
        library=library,
        error=error,
        # Of another root's programs it is another.
        c_library=platform.libc_ver() if root == Path("/") else ("", ""),
        folder=str(there),
        without_exec=bool(os.statvfs(folder).f_flag & os.ST_NOEXEC),
        writable=os.access(folder, os.W_OK),
    )


def _load(library: str) -> str:
    """Why a program does not load it; empty: it does. The loader itself runs on without a library that it refuses."""
    program = shutil.which("true")
    if program is None:
        return "whether programs load the hook is not known: there is no program 'true' in PATH"
    try:
        done = subprocess.run(
            [program],
            env={**os.environ, "LD_PRELOAD": library},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"{program} with {library}: it did not end within {PATIENCE_S} s"
    said = done.stderr.strip().partition("\n")[0] or (f"exit status {done.returncode}" if done.returncode else "")
    return said and f"{program} with {library}: {said}"


def _board(tree: Tree) -> Board:
    swap_kib = 0
    for line in (tree.read("/proc/meminfo") or b"").decode(errors="replace").splitlines():
        name, _, amount = line.partition(":")
        if name == "SwapTotal" and amount.split()[:1] and amount.split()[0].isdecimal():
            swap_kib = int(amount.split()[0])
    return Board(swap_kib, _has_memory_cgroup(tree))


def _has_memory_cgroup(tree: Tree) -> bool:
    """Whether the kernel counts memory by cgroup, of either version; where it says nothing of them nothing is amiss."""
    controllers = tree.line("/sys/fs/cgroup/cgroup.controllers")
    if controllers is not None:
        return "memory" in controllers.split()
    known = (tree.read("/proc/cgroups") or b"").decode(errors="replace").splitlines()
    rows = [line.split() for line in known if not line.startswith("#")]
    return not rows or any(row[0] == "memory" and row[-1] == "1" for row in rows if row)
