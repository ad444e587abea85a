"""What is said of a node, by what was seen: each thing that can be wrong is told, and nothing is where all is well."""

import re
from dataclasses import replace

import pytest

from deviceplugin.config import Config
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
from edgeshare.cli.doctor.rules import State, findings
from edgeshare.contract.devices import Accelerator, Device

GPU = Device(id="GPU-1", index=0, model="A100", memory_mib=40_000, source="nvml")
TPU = Device(id="0000:01:00.0", index=0, model="Coral", memory_mib=0, accelerator=Accelerator.EDGETPU, source="edgetpu")
SOCKETS = ("/var/lib/kubelet/device-plugins/kubelet.sock", "/var/lib/kubelet/pod-resources/kubelet.sock")
CONTAINERD = Runtime("/etc/containerd/config.toml", handlers=("runc", "nvidia"), default="nvidia")
HOOK = Hook("/opt/hook.so", "", ("glibc", "2.36"), "/var/lib", without_exec=False, writable=True)
WELL = Node(
    as_root=True,
    devices=Devices((GPU,), (), ()),
    kubelet=Kubelet(tuple((path, Socket.SERVED) for path in SOCKETS)),
    other_plugins=OtherPlugins({"nvidia.com/gpu": ["GPU-elsewhere"]}),
    runtimes=(CONTAINERD,),
    toolkit=None,
    hook=HOOK,
    manager=Socket.SERVED,
    board=Board(swap_kib=0, memory_cgroup=True),
)
NO_KUBELET = replace(WELL, kubelet=Kubelet(()))


def one(node: Node, state: State) -> tuple[str, str, str]:
    """The only thing of a state: subject, text and what to do."""
    (found,) = (finding for finding in findings(node) if finding.state is state)
    return found.subject, found.text, found.mend


def states(node: Node) -> set[State]:
    return {finding.state for finding in findings(node)}


def with_runtime(**changes: object) -> Node:
    return replace(WELL, runtimes=(replace(CONTAINERD, **changes),))


def with_hook(**changes: object) -> Node:
    return replace(WELL, hook=replace(HOOK, **changes))


def with_sockets(*sockets: Socket) -> Node:
    return replace(WELL, kubelet=Kubelet(tuple(zip(SOCKETS, sockets, strict=True))))


def test_of_a_kubelet_with_other_folders_it_is_said_which_values_of_the_chart_name_them() -> None:
    plugins, pods = "/var/snap/strict/device-plugins", "/var/lib/k0s/kubelet/pod-resources"
    served = tuple((f"{folder}/kubelet.sock", Socket.SERVED) for folder in (plugins, pods))
    found = [each for each in findings(replace(WELL, kubelet=Kubelet(served))) if each.subject == "kubelet"]
    assert [(each.state, each.text, each.mend) for each in found] == [
        (State.NOTE, f"{path} is served", f"install the chart with --set {value}")
        for (path, _), value in zip(
            served, (f"kubeletDevicePluginsDir={plugins}", "kubeletRootDir=/var/lib/k0s/kubelet"), strict=True
        )
    ]


@pytest.mark.parametrize(
    "node",
    [
        with_runtime(with_cdi=False),
        with_runtime(handlers=("runc",), default="runc"),
        replace(WELL, toolkit=Toolkit("/t", takes_variables=False)),
    ],
)
def test_the_other_way_for_a_container_to_get_its_gpus_is_named_as_the_chart_takes_it(node: Node) -> None:
    mends = [each.mend for each in findings(node) if "CDI" in each.mend]
    assert mends
    for mend in mends:
        settings = dict(re.findall(r"--set devicePlugin\.config\.injection\.(\w+)=([\w./]+)", mend))
        assert settings == {"devices": "cdi", "cdi_gpu_kind": "nvidia.com/gpu"}
        assert Config.model_validate({"injection": settings}).injection.devices == "cdi"


def test_of_a_node_where_all_is_well_nothing_else_is_said() -> None:
    assert states(WELL) == {State.FINE}
    assert next(finding.text for finding in findings(WELL)) == "1 x A100 (gpu)"
    assert {finding.mend for finding in findings(WELL)} == {""}


@pytest.mark.parametrize(
    ("node", "subject", "text", "mend"),
    [
        (replace(WELL, unreadable="/x cannot be read"), "files", "/x cannot be read", ""),
        (replace(WELL, devices=Devices((GPU,), ("no driver answers",), ())), "devices", "no driver answers", ""),
        (
            replace(WELL, devices=Devices((replace(GPU, healthy=False, cause="Xid 79"),), (), ())),
            *("devices", "GPU-1 is not healthy: Xid 79", ""),
        ),
        (with_sockets(Socket.REFUSED, Socket.SERVED), "kubelet", f"nobody serves {SOCKETS[0]}", "start the kubelet"),
        (with_sockets(Socket.SERVED, Socket.ABSENT), "kubelet", f"nobody serves {SOCKETS[1]}", "start the kubelet"),
        (with_sockets(Socket.SERVED, Socket.FORBIDDEN), "kubelet", f"{SOCKETS[1]} lets us not in", "run it as root"),
        (with_runtime(handlers=("runc",), default="runc"), "runtime", "no handler nvidia", "nvidia-ctk runtime"),
        (with_runtime(error="it is no TOML"), "runtime", "config.toml: it is no TOML", ""),
        (replace(WELL, toolkit=Toolkit("/t", error="it is no TOML")), "toolkit", "/t: it is no TOML", ""),
        (with_hook(error="it is not there: build it"), "hook", "it is not there: build it", ""),
        (with_hook(c_library=("glibc", "2.16")), "hook", "glibc 2.16, older than 2.17", "images with glibc 2.17"),
        (with_hook(without_exec=True), "hook", "/var/lib is mounted noexec", "stateDir"),
        (with_hook(writable=False), "hook", "/var/lib cannot be written to", "read-write"),
        (replace(WELL, manager=Socket.ABSENT), "manager", "no share manager serves", "sharemgr node"),
        (replace(WELL, manager=Socket.REFUSED), "manager", "no share manager serves", "sharemgr node"),
        (replace(WELL, board=Board(0, memory_cgroup=False)), "board", "no memory cgroup", "cgroup_enable=memory"),
    ],
)
def test_what_is_wrong_is_said_once_with_what_mends_it(node: Node, subject: str, text: str, mend: str) -> None:
    found = one(node, State.WRONG)
    assert found[0] == subject
    assert text in found[1]
    assert mend in found[2]
    assert bool(mend) == bool(found[2])


@pytest.mark.parametrize(
    ("node", "subject", "text"),
    [
        (replace(WELL, as_root=False), "rights", "not run as root"),
        (replace(WELL, devices=Devices((GPU,), (), ("power is not told",))), "driver", "power is not told"),
        (replace(WELL, devices=Devices((), (), ())), "devices", "no GPU or EdgeTPU here"),
        (NO_KUBELET, "kubelet", "no kubelet has a folder here"),
        (
            replace(WELL, other_plugins=OtherPlugins({"nvidia.com/gpu": ["GPU-1"]})),
            *("plugins", "nvidia.com/gpu on this node has it too; leave it out of one of the two"),
        ),
        (replace(WELL, other_plugins=OtherPlugins({}, "no answer")), "plugins", "not known whether another"),
        (replace(WELL, runtimes=()), "runtime", "no configuration of containerd or CRI-O"),
        (with_runtime(default="runc"), "runtime", "nvidia is not the default (runc)"),
        (with_runtime(default=""), "runtime", "nvidia is not the default (none is named)"),
        (with_runtime(with_cdi=False), "runtime", "names of CDI are not looked at"),
        (replace(WELL, manager=Socket.FORBIDDEN), "manager", "lets us not in"),
        (
            replace(WELL, devices=Devices((TPU,), (), ()), board=Board(2048, memory_cgroup=True)),
            "board",
            "2 MiB of swap",
        ),
        (replace(NO_KUBELET, kubelet=Kubelet(()), board=Board(2048, memory_cgroup=True)), "kubelet", "no kubelet"),
    ],
)
def test_what_may_be_meant_so_is_a_note(node: Node, subject: str, text: str) -> None:
    found = one(node, State.NOTE)
    assert found[0] == subject
    assert text in found[1]
    assert State.WRONG not in states(node)


@pytest.mark.parametrize(
    ("takes_variables", "text", "mend"),
    [
        (True, "any container gets the GPUs that its NVIDIA_VISIBLE_DEVICES names", f"set {TAKES_VARIABLES} = false"),
        (False, "no container without privileges is made", f"needs {TAKES_VARIABLES} = true"),
    ],
)
def test_nvidias_toolkit_suits_one_way_to_hand_out_gpus_or_all_the_others(
    takes_variables: bool, text: str, mend: str
) -> None:
    """Which one is set, a node's files do not say: neither is wrong."""
    node = replace(WELL, toolkit=Toolkit("/t", takes_variables=takes_variables))
    found = one(node, State.NOTE)
    assert found[0] == "toolkit"
    assert text in found[1]
    assert mend in found[2]
    assert "devicePlugin.config.injection.devices=cdi" in found[2]
    assert State.WRONG not in states(node)


def test_without_a_gpu_of_the_driver_no_runtime_has_to_know_of_nvidia() -> None:
    bare = replace(with_runtime(handlers=("runc",), default="runc"), devices=Devices((TPU,), (), ()))
    assert states(bare) == {State.FINE}
    assert not [finding for finding in findings(bare) if finding.subject in ("runtime", "toolkit")]


def test_a_node_with_nothing_to_share_needs_no_manager() -> None:
    empty = replace(WELL, devices=Devices((), (), ()), manager=Socket.ABSENT)
    assert State.WRONG not in states(empty)


def test_equal_devices_are_one_line() -> None:
    both = replace(WELL, devices=Devices((GPU, replace(GPU, id="GPU-2"), TPU), (), ()))
    said = [finding.text for finding in findings(both) if finding.subject == "devices"]
    assert said == ["2 x A100 (gpu)", "1 x Coral (edgetpu)"]
