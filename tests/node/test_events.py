"""What a pod's owner is told by a Kubernetes event."""

import asyncio
import os
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from edgeshare.contract.errors import Unavailable
from edgeshare.kube.kube import Kube
from edgeshare.log_limit import SAID_EVERY_NS
from edgeshare.v1 import allocations_pb2 as messages
from sharemgr.node.events import EVENTS_BURST, Events, Reason
from sharemgr.node.machine.allocations import Owner
from simgpu.native import BURN
from tests.kit.apiserver.serving import serving
from tests.kit.manager.testbed import Testbed
from tests.kit.pages.pages import ON, Pages
from tests.kit.processes.waiting import PATIENCE_S


def groups() -> Path | None:
    """Where control groups can be made, on this machine."""
    places = (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup/systemd"), Path("/sys/fs/cgroup"))
    return next((place for place in places if os.access(place / "cgroup.procs", os.W_OK)), None)


@contextmanager
def container(uid: str, container_id: str) -> Iterator[Path]:
    """A control group as a kubelet makes it; yields the file that takes pids in."""
    place = groups()
    assert place is not None
    folders = [place / f"edgeshare-test-{os.getpid()}"]
    folders += [folders[0] / f"pod{uid}", folders[0] / f"pod{uid}" / container_id]
    for folder in folders:
        folder.mkdir()
    try:
        yield folders[-1] / "cgroup.procs"
    finally:
        for folder in reversed(folders):
            folder.rmdir()


@pytest.mark.skipif(groups() is None, reason="no control group can be made here")
def test_a_process_that_no_hook_joined_is_told_once_with_its_pod(testbed: Testbed) -> None:
    uid, container_id = str(uuid.uuid4()), "0123456789abcdef" * 4
    with serving(testbed.root) as (api, kubeconfig), container(uid, container_id) as joined:
        manager = testbed.manager(f"{ON}node_name: n1\nkubeconfig: {kubeconfig}\n")
        pages = Pages(manager)
        with testbed.calls() as calls:
            owner = messages.Owner(namespace="team", pod="train", pod_uid=uid, container="main")
            wanted = messages.Allocation(id="one", device_ids=testbed.uuids[:1], request_percent=30, owner=owner)
            held = calls.hold(wanted, wait_for_manager=False)
            next(held)
            stripped = subprocess.Popen([BURN, "--seconds", "600"], env=testbed.environment, stdout=subprocess.DEVNULL)
            try:
                joined.write_text(str(stripped.pid))
                status = testbed.until(lambda status: bool(status.devices[0].unmanaged_processes))
                (found,) = status.devices[0].unmanaged_processes
                assert (found.pid, found.pod_uid, found.container_id) == (stripped.pid, uid, container_id)
                while not api.events:
                    os.sched_yield()
                for _ in zip(range(25), calls.watch(100_000_000), strict=False):
                    # For two looks more: it is told once.
                    pass
                device = f"{testbed.uuids[0]},0,t4"
                unmanaged = [
                    value for name, value in pages.values().items() if name.startswith("edgeshare_device_unmanaged")
                ]
                assert sorted(unmanaged) == [0, 1], device
            finally:
                stripped.kill()
                stripped.wait(PATIENCE_S)
        (event,) = api.events
        assert event["involvedObject"] == {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "team",
            "name": "train",
            "uid": uid,
        }
        assert event["reason"] == "UnmanagedGPUProcess"
        assert str(stripped.pid) in event["message"]
        assert testbed.uuids[0] in event["message"]
        said = [line for line in manager.log().splitlines() if "no hook tells of it" in line]
        assert len(said) == 1
        assert "in pod team/train (allocation one)" in said[0]
        manager.end()


@pytest.mark.skipif(groups() is None, reason="no control group can be made here")
def test_a_stranger_of_a_pod_with_no_share_is_told_to_that_pod_and_one_outside_pods_is_logged(testbed: Testbed) -> None:
    uid = str(uuid.uuid4())
    with serving(testbed.root) as (api, kubeconfig), container(uid, "f" * 64) as joined:
        api.put_pod("other", uid, {})
        manager = testbed.manager(f"node_name: n1\nkubeconfig: {kubeconfig}\n")
        burns = [
            subprocess.Popen([BURN, "--seconds", "600"], env=testbed.environment, stdout=subprocess.DEVNULL)
            for _ in range(2)
        ]
        try:
            joined.write_text(str(burns[0].pid))
            testbed.until(lambda status: len(status.devices[0].unmanaged_processes) == 2)
            while not api.events:
                os.sched_yield()
        finally:
            for burn in burns:
                burn.kill()
                burn.wait(PATIENCE_S)
        (event,) = api.events
        assert event["involvedObject"]["name"] == "other"
        assert f"process {burns[1].pid}, in no pod, uses GPU" in manager.log()
        manager.end()


async def written() -> None:
    """Waits for all that is being written."""
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}), return_exceptions=True)


async def test_one_reason_for_events_leaves_room_for_another(tmp_path: Path) -> None:
    """A pod that starts programs past the hook again and again keeps nobody else's event away."""
    with serving(tmp_path) as (api, kubeconfig):
        events = Events("n1", lambda: Kube.from_kubeconfig(kubeconfig))
        owner = Owner(namespace="team", pod="train", pod_uid="1")
        for number in range(EVENTS_BURST + 10):
            events.warn(owner, Reason.UNMANAGED_PROCESS, f"process {number}")
        events.warn(owner, Reason.CONTEXT_REFUSED, "a context")
        await written()
        await events.close()
        reasons = sorted(event["reason"] for event in api.events)
    assert reasons == [Reason.CONTEXT_REFUSED, *[Reason.UNMANAGED_PROCESS] * EVENTS_BURST]


async def test_a_flood_of_events_keeps_none_away_that_comes_after_it(tmp_path: Path) -> None:
    now_ns = 0
    with serving(tmp_path) as (api, kubeconfig):
        events = Events("n1", lambda: Kube.from_kubeconfig(kubeconfig), lambda: now_ns)
        hostile, other = (Owner(namespace="team", pod=pod, pod_uid=pod) for pod in ("hostile", "other"))
        for number in range(1000):
            events.warn(hostile, Reason.UNMANAGED_PROCESS, f"process {number}")
        now_ns = SAID_EVERY_NS
        events.warn(other, Reason.UNMANAGED_PROCESS, "a process")
        await written()
        await events.close()
        pods = [event["involvedObject"]["name"] for event in api.events]
    assert sorted(pods) == ["hostile"] * EVENTS_BURST + ["other"]


async def test_an_event_that_cannot_be_written_is_said_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(tmp_path) as (api, kubeconfig):
        api.broken = True
        events = Events("n1", lambda: Kube.from_kubeconfig(kubeconfig))
        events.warn(Owner(pod_uid="1"), Reason.UNMANAGED_PROCESS, "a process")
        await written()
        await events.close()
    (said,) = caplog.messages
    assert said.startswith("no event UnmanagedGPUProcess: ")
    assert "etcd is away" in said


async def test_who_is_in_no_pod_gets_no_event(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Nor does the API server hear of it."""
    events = Events("n1", lambda: Kube.from_kubeconfig(tmp_path / "none"))
    events.warn(Owner(command="train"), Reason.CONTEXT_REFUSED, "a context")
    await written()
    assert not caplog.messages
    await events.close()


async def test_events_that_cannot_be_written_are_a_line_of_each_reason_now_and_then(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def cluster() -> Kube:
        raise Unavailable("the API server is away")

    now_ns = 0
    events = Events("n1", cluster, lambda: now_ns)
    owner = Owner(namespace="team", pod="train", pod_uid="1")
    for _ in range(5):
        events.warn(owner, Reason.UNMANAGED_PROCESS, "a process")
    events.warn(owner, Reason.CONTEXT_REFUSED, "a context")
    await written()
    now_ns = SAID_EVERY_NS
    events.warn(owner, Reason.UNMANAGED_PROCESS, "a process")
    await written()
    await events.close()
    assert sorted(caplog.messages) == [
        "no event GPUContextRefused: the API server is away",
        "no event UnmanagedGPUProcess: the API server is away",
        "no event UnmanagedGPUProcess: the API server is away (4 more since the last such line)",
    ]
