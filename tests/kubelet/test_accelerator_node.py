"""What a node's AcceleratorNode tells of devices and allocations."""

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

from edgeshare.contract.names import ACCELERATOR_NODES
from tests.kit.apiserver.scripted_api_server import ApiServer
from tests.kit.kubelet.node_under_test import FIRST, MEMORY_MIB, SECOND, UUIDS, Node
from tests.kit.kubelet.pod import Pod
from tests.kit.kubelet.wishes import assigned, put
from tests.kit.processes.waiting import until_true


def status(api: ApiServer) -> dict[str, Any]:
    """What the node's AcceleratorNode says; empty while there is none."""
    found: dict[str, Any] = api.accelerator_nodes.get("n1", {}).get("status", {})
    return found


async def test_the_accelerator_node_tells_devices_and_allocations(in_cluster: Node, api: ApiServer) -> None:
    pod = assigned(api, Pod("trainer", {"main": 30}), SECOND, memory="2000")
    answer = (await in_cluster.kubelet.run(pod))["main"]
    await until_true(lambda: status(api).get("allocationCount") == 1)
    assert [(each["id"], each["kind"], each["memoryMiB"], each["healthy"]) for each in status(api)["devices"]] == [
        (uuid, "gpu", MEMORY_MIB, True) for uuid in UUIDS
    ]
    (made,) = status(api)["allocations"]
    (folder,) = [mount.host_path for mount in answer.mounts if mount.container_path == "/run/edgeshare"]
    assert made == {
        "id": folder.rpartition("/")[2],
        "devices": [SECOND],
        "unitsEach": 30,
        "memoryMiB": 2000,
        "pod": {"namespace": "team", "name": "trainer", "uid": pod.uid},
        "container": "main",
    }
    (owner,) = api.accelerator_nodes["n1"]["metadata"]["ownerReferences"]
    assert owner == {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "uid-of-n1"}
    await asyncio.sleep(2)  # what it wrote was told back to it, and led to another look
    before = datetime.now(UTC).replace(microsecond=0)
    in_cluster.machine.inject_xid(UUIDS.index(FIRST), 62)
    await until_true(lambda: status(api)["healthyCount"] == 1)
    devices = {each["id"]: each for each in status(api)["devices"]}
    ill = {key: devices[FIRST].get(key) for key in ("reason", "cause", "source")}
    assert ill == {"reason": "Xid", "cause": "XID 62", "source": "driver-event"}
    assert before <= datetime.fromisoformat(devices[FIRST]["since"]) <= datetime.now(UTC)
    assert not {"reason", "cause", "source", "since"} & devices[SECOND].keys()
    in_cluster.kubelet.end(pod)
    api.end_pod("trainer")
    await until_true(lambda: status(api)["allocationCount"] == 0)


async def test_an_allocation_is_shown_until_the_manager_has_let_it_go(in_cluster: Node, api: ApiServer) -> None:
    pod = put(api, Pod("trainer", {"main": 30}))
    await in_cluster.kubelet.run(pod)
    await until_true(lambda: status(api).get("allocationCount") == 1)
    await in_cluster.stop_manager()
    in_cluster.kubelet.end(pod)
    api.end_pod("trainer")
    await in_cluster.until_said("allocations not compared")
    await asyncio.sleep(2)  # more than it takes to write
    assert status(api)["allocationCount"] == 1
    await in_cluster.start_manager()
    await until_true(lambda: status(api)["allocationCount"] == 0)


async def test_an_allocation_is_shown_while_its_pod_is_gone_but_a_process_of_it_runs(
    in_cluster: Node, api: ApiServer
) -> None:
    pod = put(api, Pod("trainer", {"main": 30}))
    answer = (await in_cluster.kubelet.run(pod))["main"]
    async with in_cluster.client(answer):
        in_cluster.kubelet.end(pod)
        api.end_pod("trainer")
        await asyncio.sleep(2)  # several comparisons, and time to write
        assert status(api)["allocationCount"] == 1
        assert set(await in_cluster.allocations()) == {"trainer/main"}
    await until_true(lambda: status(api)["allocationCount"] == 0)
    await in_cluster.until_allocations_are()


async def test_an_accelerator_node_that_others_changed_or_deleted_is_written_again(
    in_cluster: Node, api: ApiServer
) -> None:
    await until_true(lambda: status(api))
    before = json.dumps(status(api))
    forged = json.loads(json.dumps(api.accelerator_nodes["n1"]))
    forged["status"]["devices"][0]["healthy"] = False
    api.accelerator_nodes["n1"] = forged
    api.tell(ACCELERATOR_NODES, "MODIFIED", forged)
    await until_true(lambda: json.dumps(status(api)) == before)
    gone = api.accelerator_nodes.pop("n1")
    api.nodes["n1"]["metadata"]["uid"] = "uid-of-another"
    api.tell(ACCELERATOR_NODES, "DELETED", gone)
    await until_true(lambda: json.dumps(status(api)) == before)
    assert api.accelerator_nodes["n1"]["metadata"]["ownerReferences"][0]["uid"] == "uid-of-another"
    applies = api.applies
    await asyncio.sleep(2)  # without a change there is no write
    assert api.applies == applies
