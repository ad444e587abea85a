"""Being registered, and staying so, whatever the kubelet does."""

import asyncio
import signal
from pathlib import Path

import grpc
import pytest

from deviceplugin.kubelet.registration import REGISTER_TIMEOUT_S
from edgeshare.kubelet.v1beta1 import deviceplugin_pb2 as api
from tests.kit.kubelet.node_under_test import UUIDS, Node
from tests.kit.kubelet.pod import Pod
from tests.kit.kubelet.pod_resources import shuffled
from tests.kit.processes import forked
from tests.kit.processes.waiting import until_true

SAFETY_S = 30


def make_anew(socket: Path) -> None:
    """As a kubelet's start does. The inode is the same: only the time of its change tells."""
    inode = socket.stat().st_ino
    socket.rename(socket.with_name("elsewhere"))
    socket.with_name("elsewhere").rename(socket)
    assert socket.stat().st_ino == inode


async def test_the_kubelet_is_told_of_a_hundred_units_a_gpu(ready: Node) -> None:
    plugin = ready.kubelet.plugin
    assert set(plugin.units) == {f"{uuid}::{unit:02}" for uuid in UUIDS for unit in range(100)}
    assert plugin.options.pre_start_required
    assert plugin.options.get_preferred_allocation_available


async def until_one_socket(node: Node) -> str:
    """Its name. A session that began with the kubelet before may still be ending."""
    kubelet = node.kubelet
    await until_true(lambda: kubelet.registrations and node.own_sockets() == [kubelet.plugin.endpoint])
    return kubelet.plugin.endpoint


async def test_a_kubelet_that_starts_anew_finds_the_plugin_under_a_new_name(ready: Node) -> None:
    first = ready.kubelet.plugin.endpoint
    bystander = ready.kubelet.folder / "kubelet_internal_checkpoint"
    bystander.touch()
    await ready.kubelet.stop()
    await ready.kubelet.start()
    await ready.kubelet.until(healthy=200)
    again = await until_one_socket(ready)
    assert again != first
    assert bystander.exists()


async def test_a_kubelet_that_starts_many_times_in_a_row_ends_up_with_the_plugin(ready: Node) -> None:
    for _ in range(5):
        await ready.kubelet.stop()
        await ready.kubelet.start()
    await ready.kubelet.until(healthy=200)
    await until_one_socket(ready)


async def test_a_plugin_whose_socket_is_taken_away_registers_again(ready: Node) -> None:
    (ready.kubelet.folder / ready.kubelet.plugin.endpoint).unlink()
    await ready.kubelet.until(registrations=2, healthy=200)


async def test_a_kubelet_socket_that_was_made_anew_is_seen_as_a_new_kubelet(ready: Node) -> None:
    make_anew(ready.kubelet.folder / "kubelet.sock")
    await ready.kubelet.until(registrations=2, healthy=200)


async def test_a_kubelet_that_stops_watching_is_asked_again(ready: Node) -> None:
    ready.kubelet.plugin.stream.cancel()
    await ready.kubelet.until(registrations=2, healthy=200)


async def test_a_kubelet_that_comes_later_is_waited_for(node: Node) -> None:
    await node.kubelet.stop()
    node.kubelet.folder.rmdir()
    await node.start_plugin()
    await node.until_said("no kubelet listens at")
    await node.kubelet.start()
    await node.kubelet.until(healthy=200)


async def test_a_kubelet_that_refuses_for_a_while_is_asked_again(node: Node) -> None:
    node.kubelet.register_error = grpc.StatusCode.UNAVAILABLE
    await node.start_plugin()
    await node.until_said("does not register us: not now")
    # Nothing of an attempt is left behind.
    assert len(node.own_sockets()) <= 1
    node.kubelet.register_error = None
    await node.kubelet.until(healthy=200)


async def test_a_kubelet_that_answers_late_is_waited_for(node: Node) -> None:
    node.kubelet.may_register.clear()
    await node.start_plugin()
    await node.kubelet.until_asked(1)
    await asyncio.sleep(1)
    node.kubelet.may_register.set()
    await node.kubelet.until(healthy=200)
    assert node.kubelet.asked == 1


async def test_a_kubelet_that_never_answers_is_left_for_the_next_one_at_once(node: Node) -> None:
    node.kubelet.may_register.clear()
    await node.start_plugin()
    await node.kubelet.until_asked(1)
    make_anew(node.kubelet.folder / "kubelet.sock")
    async with asyncio.timeout(REGISTER_TIMEOUT_S / 2):
        await node.kubelet.until_asked(2)
    node.kubelet.may_register.set()
    await node.kubelet.until(healthy=200)
    assert node.own_sockets() == [node.kubelet.plugin.endpoint]


async def test_sigterm_ends_it_at_once_while_the_kubelet_does_not_answer(node: Node) -> None:
    node.kubelet.may_register.clear()
    await node.start_plugin()
    await node.kubelet.until_asked(1)
    async with asyncio.timeout(REGISTER_TIMEOUT_S / 2):
        assert await node.stop_plugin(signal.SIGTERM) == 0
    assert node.own_sockets() == []


async def test_what_answers_in_place_of_a_kubelet_but_is_none_is_said_and_asked_again(node: Node) -> None:
    await node.kubelet.stop()
    path = node.kubelet.folder / "kubelet.sock"
    path.unlink(missing_ok=True)

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nnonsense" * 1000)
        writer.close()

    async with await asyncio.start_unix_server(answer, path):
        await node.start_plugin()
        await node.until_said(f"the kubelet at {path} does not register us: ")
    await node.kubelet.start()
    await node.kubelet.until(healthy=200)
    assert "Traceback" not in node.plugin_log.read_text()


async def test_a_kubelet_that_registers_it_and_takes_no_list_is_asked_again(node: Node) -> None:
    node.kubelet.takes_lists = False
    await node.start_plugin()
    await node.until_said("the kubelet registered us but takes no list: look into its log")
    assert "ready, " not in node.plugin_log.read_text()
    node.kubelet.takes_lists = True
    await node.kubelet.until(healthy=200)


async def test_a_kubelet_that_calls_twice_at_once_gets_one_allocation(ready: Node) -> None:
    units = shuffled({f"{UUIDS[0]}::{unit:02}" for unit in range(30)})
    asked = api.AllocateRequest(container_requests=[api.ContainerAllocateRequest(devices_ids=units)])
    stub = ready.kubelet.plugin.stub
    async with asyncio.timeout(SAFETY_S):
        one, other = await asyncio.gather(stub.Allocate(asked), stub.Allocate(asked))
    assert one == other
    pod = Pod("trainer", {"main": 30})
    ready.kubelet.pods[pod.uid] = pod
    ready.kubelet.held[pod.uid, "main"] = frozenset(units)
    ready.kubelet.answers[pod.uid, "main"] = one.container_responses[0]
    await asyncio.gather(*(ready.kubelet.start_container(pod, "main") for _ in range(2)))
    assert set(await ready.allocations()) == {"trainer/main"}


async def test_a_kubelet_that_does_not_say_who_has_what_holds_up_no_admission_for_long(ready: Node) -> None:
    ready.kubelet.may_list.clear()
    async with asyncio.timeout(SAFETY_S):
        held = await ready.kubelet.admit(Pod("trainer", {"main": 30}))
    assert len(held["main"]) == 30
    await ready.until_said("choosing units without the kubelet's list")


async def test_every_stream_gets_every_change(ready: Node) -> None:
    second = ready.kubelet.plugin.stub.ListAndWatch(api.Empty())
    async with asyncio.timeout(SAFETY_S):
        assert len((await second.read()).devices) == 200
        ready.machine.inject_lost(0)
        await ready.kubelet.until(healthy=100)
        ill = {device.ID[: len(UUIDS[0])] for device in (await second.read()).devices if device.health == "Unhealthy"}
    assert ill == {UUIDS[0]}
    second.cancel()


async def test_all_units_of_a_gpu_with_a_fault_are_unhealthy_and_no_others(ready: Node) -> None:
    ready.machine.inject_xid(1, 79)
    await ready.kubelet.until(healthy=100)
    assert {unit[: len(UUIDS[0])] for unit in ready.kubelet.healthy()} == {UUIDS[0]}
    assert len(ready.kubelet.plugin.units) == 200


async def test_no_driver_is_normal_and_said_once(node: Node) -> None:
    await node.start_plugin(driver=False)
    await node.kubelet.until(healthy=0)
    await node.until_said("ready, 0 GPUs")
    await asyncio.sleep(0.5)  # some scans
    assert node.plugin_log.read_text().count("no NVIDIA driver answers here") == 1
    assert node.plugin is not None
    assert node.plugin.poll() is None


async def test_sigterm_ends_it_cleanly_and_at_once(ready: Node) -> None:
    assert await ready.stop_plugin(signal.SIGTERM) == 0
    assert ready.own_sockets() == []
    assert "Traceback" not in ready.plugin_log.read_text()


async def test_what_a_killed_plugin_left_is_cleared_away(ready: Node) -> None:
    await ready.stop_plugin(signal.SIGKILL)
    assert len(ready.own_sockets()) == 1
    await ready.start_plugin()
    await ready.kubelet.until(registrations=2, healthy=200)
    assert ready.own_sockets() == [ready.kubelet.plugin.endpoint]


async def test_containers_run_on_over_a_restart_of_plugin_and_kubelet(ready: Node) -> None:
    pod = Pod("trainer", {"main": 50})
    before = await ready.kubelet.run(pod)
    await ready.stop_plugin(signal.SIGKILL)
    await ready.kubelet.stop()
    await ready.kubelet.start()
    await ready.start_plugin()
    await ready.kubelet.until(healthy=200)
    assert {"main": await ready.kubelet.start_container(pod, "main")} == before
    assert set(await ready.allocations()) == {"trainer/main"}


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (
            "nodename: n1\n",
            "unknown key 'nodename': the keys are include, exclude, inventory, injection, rescan_s, compare_s, health, "
            "advertise, configs",
        ),
        (
            "configs: {edge: {rescan: 1}}\n",
            "unknown key 'configs.edge.rescan': the keys are include, exclude, inventory, injection, rescan_s",
        ),
        ("exclude: [{uuid: x}]\n", "unknown key 'exclude.0.uuid': the keys are id, index, model, kind"),
        ("exclude: [{}]\n", "exclude.0: Value error, name an id, an index, a model or a kind, found {}"),
        ("configs: {-x: {}}\n", "configs.-x"),
        ("rescan_s: soon\n", "rescan_s: "),
        ("- a list\n", "expected lines of the form"),
        ("kubeconfig: /nowhere\nnode_name: n1\n", "/nowhere: cannot be used as a kubeconfig"),
        ("kubeconfig: /nowhere\n", "the node's name is not known: set NODE_NAME"),
        ("kubelet_dir: /" + "x" * 100 + "\n", "would be longer than the 107 bytes of a socket's path"),
    ],
)
def test_a_wrong_configuration_is_one_line_and_nothing_is_started(root: Path, config: str, text: str) -> None:
    path = root / "config.yaml"
    path.write_text(config)
    command = ["deviceplugin", "--config", str(path)]
    command += ["--runtime-dir", str(root / "run"), "--state-dir", str(root / "state")]
    ended = forked.run(command, SAFETY_S, {"PATH": ""})
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert text in line
    assert not (root / "run").exists()
