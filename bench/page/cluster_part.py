"""What the cluster part takes that serves the page of a large cluster, while nobody follows it: each ten seconds it
asks all nodes' managers, whom one stand-in answers for."""

import asyncio
from functools import partial
from pathlib import Path

import yaml

from bench.assigner.objects import GPUS, NAMESPACE, Json
from bench.assigner.process import command
from bench.host import cpu_seconds
from bench.measurement import Bench, Effort, Measurement
from bench.page.first_picture import NODES, ON_A_GPU, TARGET_PERCENT, taken
from bench.report import Row
from edgeshare.contract.errors import Unavailable
from edgeshare.contract.units import MIB
from edgeshare.v1.allocations_pb2 import Allocation, Owner
from edgeshare.v1.status_pb2 import NodeStatus
from tests.kit.apiserver.api_server import api_server, done
from tests.kit.assigner.world import ANY, World, answering
from tests.kit.deploy.manifests import CHART
from tests.kit.processes.errors import NodeError

SETTLED_S = 15
"""Until it has connected to all nodes, and has looked at them twice."""

PAGE, NO_PAGE = "the cluster part that serves it, while nobody follows", "the same without the page"


def measurements(effort: Effort) -> list[Measurement]:
    """One."""
    return [Measurement("the cluster part that serves the page", partial(measure, effort.page_idle_s))]


def measure(idle_s: float, bench: Bench) -> list[Row]:
    """With the page, and without it."""
    folder = bench.folder / "cluster-part"
    folder.mkdir(exist_ok=True)
    try:
        with_page, without = asyncio.run(_measure(folder, idle_s))
    except NodeError as error:
        raise Unavailable(f"no API server: {error}") from error
    settings = {"GPUs": NODES * GPUS, "allocations": NODES * GPUS * ON_A_GPU}
    return [
        Row(PAGE, "% of a core", [with_page], settings, target=TARGET_PERCENT),
        Row(NO_PAGE, "% of a core", [without], settings),
    ]


async def _measure(folder: Path, idle_s: float) -> tuple[float, float]:
    with api_server(folder / "api-server") as server:
        server.define(CHART / "crds")
        world = World(server, folder / "certificates", "page")
        nodes = [taken(f"node-{number:03d}") for number in range(NODES)]
        for node in nodes:
            node["metadata"] = {"name": node["metadata"]["name"]}
        done(server.create({"apiVersion": "v1", "kind": "List", "items": nodes}))
        with answering(world.certificates / "managers.crt", _told(nodes[0]).SerializeToString()) as port:
            world.manager(port, *(node["metadata"]["name"] for node in nodes))
            return await _idle(world, folder, ANY, idle_s), await _idle(world, folder, "", idle_s)


async def _idle(world: World, folder: Path, page: str, idle_s: float) -> float:
    """What part of a core the cluster part takes, in percent."""
    (folder / "assigner.yaml").write_text(yaml.safe_dump(world.config(page)))
    words = ("sharemgr", "cluster", f"--config={folder / 'assigner.yaml'}")
    async with command(words, folder / "assigner.log", "ready") as (_, pid):
        await asyncio.sleep(SETTLED_S)
        before_s = cpu_seconds(pid)
        await asyncio.sleep(idle_s)
        return 100 * (cpu_seconds(pid) - before_s) / idle_s


def _told(node: Json) -> NodeStatus:
    """What a node's manager tells of it."""
    told = NodeStatus(version="0.1.0", window_ns=10**10)
    for index, device in enumerate(node["status"]["devices"]):
        told.devices.add(
            id=device["id"],
            index=index,
            model=device["model"],
            memory_mib=device["memoryMiB"],
            memory_used_mib=device["memoryMiB"] // 2,
            allocated_percent=100,
            healthy=True,
            accelerator="gpu",
        )
    for each in node["status"]["allocations"]:
        owner = Owner(namespace=NAMESPACE, pod=each["pod"]["name"], pod_uid=each["pod"]["uid"], container="main")
        units = each["unitsEach"]
        allocation = Allocation(id=each["id"], device_ids=each["devices"], request_percent=units, owner=owner)
        told.allocations.add(allocation=allocation, held_percent=units, gpu_percent=units - 2, memory_used_bytes=MIB)
    return told
