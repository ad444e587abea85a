"""A cluster's picture by what its API server knows: who was given what. What is used of it, the nodes' managers alone
know. Pure."""

from edgeshare.cli.status import cluster
from edgeshare.cli.status.cluster_view import NOBODY
from edgeshare.shown.picture import Device, Node, Picture, Share, line
from edgeshare.shown.service_picture import waiting_pod
from edgeshare.shown.used import NO_NODES


def cluster_picture(seen: cluster.Cluster) -> Picture:
    """What is shown of it."""
    return Picture(
        nodes=[_node(node) for node in seen.nodes],
        waiting=[waiting_pod(pod) for pod in seen.waiting],
        notice="",
        nobody=NO_NODES,
    )


def _node(node: cluster.Node) -> Node:
    devices = [_device(each) for each in node.devices]
    return Node(name=line(node.name), fault=line(node.fault), stale="", devices=devices)


def _device(device: cluster.Device) -> Device:
    return Device(
        id=line(device.id),
        name=line(device.id),
        model=line(f"{device.kind} {device.model}".strip()),
        cause=line(device.why),
        mode="",
        temperature_c=None,
        memory_mib=device.memory_mib,
        memory_used_mib=None,
        warning=f"{device.percent} % are given out of 100" if device.percent > 100 else "",
        shares=[_share(each, place) for place, each in enumerate(device.taken)],
    )


def _share(taken: cluster.Taken, place: int) -> Share:
    return Share(
        # A pod may be there anew, under its name, while the one before is not forgotten.
        id=line(f"{place} {taken.namespace}/{taken.pod}/{taken.container}"),
        owner=line(f"{taken.namespace}/{taken.pod}/{taken.container}") if taken.pod else NOBODY,
        asked_percent=taken.percent,
        limit_percent=None,
        used_percent=None,
        state="",
        waits=False,
        guarantee="",
        memory_mib=taken.memory_mib,
        memory_used_mib=None,
        facts=[],
    )
