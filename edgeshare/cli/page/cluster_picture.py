"""A cluster's picture by what its API server knows: who was given what. What is used of it, the nodes' managers alone
know. Pure."""

from edgeshare.cli.page.picture import TEXT_MAX, Device, Node, Picture, Share, Waiting
from edgeshare.cli.status import cluster
from edgeshare.cli.status.cluster_view import NO_NODES, NOBODY, UNSAID
from edgeshare.contract.text import in_one_line


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
    return Node(name=_line(node.name), fault=_line(node.fault), stale="", devices=devices)


def _device(device: cluster.Device) -> Device:
    return Device(
        id=_line(device.id),
        name=_line(device.id),
        model=_line(f"{device.kind} {device.model}".strip()),
        cause=_line(device.why),
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
        id=_line(f"{place} {taken.namespace}/{taken.pod}/{taken.container}"),
        owner=_line(f"{taken.namespace}/{taken.pod}/{taken.container}") if taken.pod else NOBODY,
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


def waiting_pod(pod: cluster.Waiting) -> Waiting:
    """One that has no node."""
    return Waiting(
        who=_line(f"{pod.namespace}/{pod.pod}"),
        what=_line(", ".join(f"{count} {name}" for name, count in pod.asks.items())),
        why=_line(pod.why) or UNSAID,
    )


def _line(text: str) -> str:
    return in_one_line(text, TEXT_MAX)
