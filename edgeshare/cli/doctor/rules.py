"""What is missing or wrong on a node, and what mends it: a function of what was seen."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from edgeshare.cli.doctor.facts import (
    TAKES_VARIABLES,
    Board,
    Devices,
    Hook,
    Kubelet,
    Node,
    OtherPlugins,
    Runtime,
    Socket,
    Toolkit,
)
from edgeshare.contract.devices import Accelerator
from edgeshare.contract.names import KUBELET_DIR, PLUGINS_DIR
from edgeshare.inventory.contested import contested

GLIBC_LEAST = (2, 17)
"""The oldest C library that the hook of a wheel is built for (cuda_hook/build_plain.py, ``OLDEST``)."""

NVIDIA = "nvidia"
"""The handler that NVIDIA's toolkit is configured as (``nvidia-ctk runtime configure``)."""

BY_CDI = (
    "CDI ('--set devicePlugin.config.injection.devices=cdi "
    "--set devicePlugin.config.injection.cdi_gpu_kind=nvidia.com/gpu' of the chart)"
)
"""The one way of the plugin's to hand out GPUs that names none of them in NVIDIA_VISIBLE_DEVICES."""


class State(StrEnum):
    """How it stands with something."""

    FINE = "fine"
    NOTE = "note"
    """It may be meant so; whoever misses something finds the reason here."""
    WRONG = "wrong"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    subject: str
    state: State
    text: str
    mend: str = ""
    """What to do; empty where nothing has to be done, or the text says it."""


def findings(node: Node) -> list[Finding]:
    """All that there is to say, in the order in which things have to work."""
    found = [Finding("files", State.WRONG, node.unreadable)] if node.unreadable else []
    if not node.as_root:
        mend = "run it as root, or in edgeshare's own container"
        found.append(Finding("rights", State.NOTE, "not run as root: some of what follows may be hidden", mend))
    found += _devices(node.devices)
    found += _kubelet(node.kubelet)
    found += _other_plugins(node.other_plugins, node.devices)
    has_gpu = any(device.accelerator is Accelerator.GPU and device.source == "nvml" for device in node.devices.found)
    if node.kubelet.sockets and has_gpu:
        found += _runtimes(node.runtimes)
        found += _toolkit(node.toolkit)
    found += _hook(node.hook)
    found.append(_manager(node.manager, bool(node.devices.found)))
    found += _board(node.board, bool(node.kubelet.sockets))
    return found


def _devices(devices: Devices) -> Iterator[Finding]:
    for text in devices.troubles:
        yield Finding("devices", State.WRONG, text)
    well = Counter((device.accelerator, device.model) for device in devices.found if device.healthy)
    for (accelerator, model), count in well.items():
        yield Finding("devices", State.FINE, f"{count} x {model} ({accelerator})")
    for device in devices.found:
        if not device.healthy:
            yield Finding("devices", State.WRONG, f"{device.model} {device.id} is not healthy: {device.cause}")
    for text in devices.refused:
        yield Finding("driver", State.NOTE, text)
    if not devices.found and not devices.troubles:
        mend = "look at 'edgeshare labeller --dry-run' for what else accelerates this node"
        yield Finding("devices", State.NOTE, "there is no GPU or EdgeTPU here to share", mend)


def _kubelet(kubelet: Kubelet) -> Iterator[Finding]:
    if not kubelet.sockets:
        yield Finding(
            "kubelet",
            State.NOTE,
            "no kubelet has a folder here",
            "with Kubernetes: name its folder by --kubelet-dir; without: use 'edgeshare run'",
        )
    for path, socket in kubelet.sockets:
        if socket is Socket.SERVED:
            mend = _value_for(path)
            yield Finding("kubelet", State.NOTE if mend else State.FINE, f"{path} is served", mend)
        elif socket is Socket.FORBIDDEN:
            yield Finding("kubelet", State.WRONG, f"{path} lets us not in", "run it as root")
        else:
            mend = "start the kubelet ('systemctl start kubelet'; k3s and microk8s have it in their own service)"
            yield Finding("kubelet", State.WRONG, f"nobody serves {path}", mend)


def _value_for(path: str) -> str:
    """What the chart has to be told of where a kubelet has its socket; empty where that is as shipped."""
    folder = path.rpartition("/")[0]
    above, _, name = folder.rpartition("/")
    if above == KUBELET_DIR:
        return ""
    value = f"kubeletDevicePluginsDir={folder}" if name == PLUGINS_DIR else f"kubeletRootDir={above}"
    return f"install the chart with --set {value}"


def _other_plugins(others: OtherPlugins, devices: Devices) -> Iterator[Finding]:
    """A device that ours leaves out is theirs, and that is well: which those are, a node's files do not say."""
    for text in contested(devices.found, others.ids).values():
        yield Finding("plugins", State.NOTE, text)
    if others.error:
        text = f"not known whether another device plugin has these GPUs too: {others.error}"
        yield Finding("plugins", State.NOTE, text, "look at the kubelet's log")


def _runtimes(runtimes: tuple[Runtime, ...]) -> Iterator[Finding]:
    if not runtimes:
        yield Finding(
            "runtime",
            State.NOTE,
            "no configuration of containerd or CRI-O lies where these have it",
            "see to it that containers with NVIDIA_VISIBLE_DEVICES get their GPUs",
        )
    for runtime in runtimes:
        yield _runtime(runtime)
        if not runtime.error and not runtime.with_cdi:
            mend = f"to use {BY_CDI}, set enable_cdi = true in {runtime.path} and restart it"
            yield Finding("runtime", State.NOTE, f"{runtime.path}: names of CDI are not looked at", mend)


def _runtime(runtime: Runtime) -> Finding:
    if runtime.error:
        return Finding("runtime", State.WRONG, f"{runtime.path}: {runtime.error}")
    if runtime.default == NVIDIA:
        return Finding("runtime", State.FINE, f"{runtime.path}: {NVIDIA} is the default")
    if NVIDIA in runtime.handlers:
        return Finding(
            "runtime",
            State.NOTE,
            f"{runtime.path}: {NVIDIA} is not the default ({runtime.default or 'none is named'})",
            "make a RuntimeClass of that handler, set runtimeClassName and labeller.runtimeClassName of the chart, and "
            "name it in pods with shares",
        )
    return Finding(
        "runtime",
        State.WRONG,
        f"{runtime.path}: there is no handler {NVIDIA}, so no container gets a GPU by NVIDIA_VISIBLE_DEVICES",
        f"install NVIDIA's container toolkit and run 'nvidia-ctk runtime configure', or use {BY_CDI}",
    )


def _toolkit(toolkit: Toolkit | None) -> Iterator[Finding]:
    if toolkit is None:
        return
    if toolkit.error:
        yield Finding("toolkit", State.WRONG, f"{toolkit.path}: {toolkit.error}")
    elif toolkit.takes_variables:
        yield Finding(
            "toolkit",
            State.NOTE,
            f"{toolkit.path}: any container gets the GPUs that its NVIDIA_VISIBLE_DEVICES names, whoever set it",
            f"with {BY_CDI}, set {TAKES_VARIABLES} = false; every other way to hand out GPUs needs it so",
        )
    else:
        yield Finding(
            "toolkit",
            State.NOTE,
            f"{toolkit.path}: no container without privileges is made that has GPUs in NVIDIA_VISIBLE_DEVICES",
            f"install the chart with {BY_CDI}; every other way to hand out GPUs needs {TAKES_VARIABLES} = true",
        )


def _hook(hook: Hook) -> Iterator[Finding]:
    if hook.error:
        yield Finding("hook", State.WRONG, hook.error)
    else:
        yield Finding("hook", State.FINE, f"{hook.library} is loaded by programs here")
    name, version = hook.c_library
    if name == "glibc" and tuple(int(part) for part in version.split(".")[:2]) < GLIBC_LEAST:
        least = ".".join(map(str, GLIBC_LEAST))
        mend = f"images with glibc {least} or later are held to their shares on this node; programs of its own are not"
        yield Finding("hook", State.WRONG, f"this machine's C library is glibc {version}, older than {least}", mend)
    if hook.without_exec:
        mend = "mount it without noexec, or set another state folder (the chart's stateDir)"
        yield Finding("hook", State.WRONG, f"{hook.folder} is mounted noexec: no container could load the hook", mend)
    elif not hook.writable:
        mend = "run it as root, or mount it read-write"
        yield Finding("hook", State.WRONG, f"{hook.folder} cannot be written to", mend)
    else:
        yield Finding("hook", State.FINE, f"containers can load it from {hook.folder}")


def _manager(manager: Socket, with_devices: bool) -> Finding:
    if manager is Socket.SERVED:
        return Finding("manager", State.FINE, "the share manager of this node answers")
    if manager is Socket.FORBIDDEN:
        return Finding("manager", State.NOTE, "the share manager's socket lets us not in", "run it as root")
    mend = "install the chart, or run 'edgeshare sharemgr node'; look at its log where it should run"
    state = State.WRONG if with_devices else State.NOTE
    return Finding("manager", state, "no share manager serves this node", mend)


def _board(board: Board, with_kubelet: bool) -> Iterator[Finding]:
    if not board.memory_cgroup:
        mend = "add 'cgroup_enable=memory cgroup_memory=1' to the kernel's command line, and boot anew"
        state = State.WRONG if with_kubelet else State.NOTE
        yield Finding("board", state, "the kernel counts no memory of containers (no memory cgroup)", mend)
    if board.swap_kib and with_kubelet:
        yield Finding(
            "board",
            State.NOTE,
            f"{board.swap_kib >> 10} MiB of swap are on, with which a kubelet may refuse to start",
            "'swapoff -a', and out of /etc/fstab (a Jetson: disable nvzramconfig), or the kubelet's failSwapOn: false",
        )
