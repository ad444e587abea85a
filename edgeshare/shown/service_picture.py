"""A cluster's picture where it is known how its devices are used: each node's own. Pure."""

from edgeshare.shown import waiting_pods
from edgeshare.shown.node_picture import Used as UsedPercent
from edgeshare.shown.node_picture import node_picture, used_of
from edgeshare.shown.picture import Device, Node, Picture, Waiting, line
from edgeshare.shown.used import Used, nobody, of_api_server, staleness


def service_picture(used: Used) -> Picture:
    """What is shown of it."""
    nodes: list[Node] = []
    waiting: list[Waiting] = []
    for told in used.state.nodes:
        name, own = line(told.node), node_picture(told.status)
        devices = [Device(**{**each, "id": _on(name, each["id"])}) for node in own["nodes"] for each in node["devices"]]
        nodes.append(Node(name=name, fault="", stale=staleness(told), devices=devices))
        if not told.error:
            waiting += [
                Waiting(who=each["who"], what=f"{name}: {each['what']}", why=each["why"]) for each in own["waiting"]
            ]
    return Picture(
        nodes=nodes,
        waiting=waiting + [waiting_pod(pod) for pod in used.waiting],
        notice="; ".join(of_api_server(used)),
        nobody=nobody(used),
    )


def waiting_pod(pod: waiting_pods.Waiting) -> Waiting:
    """One that has no node."""
    return Waiting(
        who=line(f"{pod.namespace}/{pod.pod}"),
        what=line(", ".join(f"{count} {name}" for name, count in pod.asks.items())),
        why=line(pod.why) or waiting_pods.UNSAID,
    )


def used_on_nodes(used: Used) -> UsedPercent:
    """Which part of each device each allocation uses now; of a node that is not of now nothing is known."""
    return {
        (_on(line(told.node), device), allocation): percent
        for told in used.state.nodes
        if not told.error
        for (device, allocation), percent in used_of(told.status).items()
    }


def _on(node: str, device: str) -> str:
    """A device's id, of which another node may have the same, as of one on PCIe."""
    return f"{node} {device}"
