"""Which container a process is said to run in, by control groups as kubelets and runtimes write them."""

import pytest

from sharemgr.node.machine.containers import Container, container_of

UID = "3f2a9c1e-77b0-4c55-9d2e-0a1b2c3d4e5f"
UNDERSCORED = UID.replace("-", "_")
HASH = "a1b2c3d4e5f60718293a4b5c6d7e8f90"
ID = "0123456789abcdef" * 4

CGROUPS = {
    "v2, systemd, containerd": (
        f"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UNDERSCORED}.slice/cri-containerd-{ID}.scope\n"
    ),
    "v2, systemd, guaranteed, CRI-O": f"0::/kubepods.slice/kubepods-pod{UNDERSCORED}.slice/crio-{ID}.scope\n",
    "v2, systemd, a group made inside": (
        f"0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{UNDERSCORED}.slice"
        f"/cri-containerd-{ID}.scope/init\n"
    ),
    "v2, cgroupfs": f"0::/kubepods/burstable/pod{UID}/{ID}\n",
    "v2, another root": (
        f"0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice"
        f"/kubelet-kubepods-burstable-pod{UNDERSCORED}.slice/cri-containerd-{ID}.scope\n"
    ),
    "v2, seen from another container": (
        f"0::/../../kubepods-besteffort-pod{UNDERSCORED}.slice/cri-containerd-{ID}.scope\n"
    ),
    "v2, seen from the same pod": f"0::/../../pod{UID}/{ID}\n",
    "v1, systemd, docker": (
        f"12:pids:/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{UNDERSCORED}.slice/docker-{ID}.scope\n"
        f"11:memory:/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{UNDERSCORED}.slice/docker-{ID}.scope\n"
        "1:name=systemd:/\n"
    ),
    "v1, cgroupfs": f"10:rdma:/\n9:cpu,cpuacct:/kubepods/besteffort/pod{UID}/{ID}\n",
    "hybrid": f"0::/\n4:devices:/kubepods/pod{UID}/{ID}\n",
}


@pytest.mark.parametrize("text", CGROUPS.values(), ids=CGROUPS)
def test_a_pods_container_is_known_whoever_made_its_control_group(text: str) -> None:
    assert container_of(text.encode()) == Container(UID, ID)


def test_a_static_pods_uid_is_a_hash() -> None:
    assert container_of((f"0::/kubepods/burstable/pod{HASH}/{ID}\n").encode()) == Container(HASH, ID)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0::/\n",
        "0::/user.slice/user-1000.slice/session-2.scope\n",
        f"0::/system.slice/docker-{ID}.scope\n",
        f"0::/kubepods/burstable/pod{UID}\n",  # the pod's own group: no container's process is in it
        f"0::/kubepods/burstable/pod{UID}/{ID[:-1]}\n",
        f"0::/kubepods/burstable/pod{UID[:-1]}/{ID}\n",
        f"0::/mypod{UID}x/{ID}\n",
        "garbage",
        "\0" * 4096,
    ],
)
def test_what_is_in_no_pod_is_said_to_be_in_none(text: str) -> None:
    assert container_of(text.encode()) is None


def test_a_group_below_its_containers_may_have_any_name() -> None:
    path = f"0::/kubepods/burstable/pod{UID}/{ID}/".encode()
    assert container_of(path + b"\xff\xfe\n") == Container(UID, ID)
