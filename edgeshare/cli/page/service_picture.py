"""A cluster's picture where it is known how its devices are used: each node's own. Pure."""

from edgeshare.cli.page.cluster_picture import waiting_pod
from edgeshare.cli.page.node_picture import Used as UsedPercent
from edgeshare.cli.page.node_picture import node_picture, used_of
from edgeshare.cli.page.picture import Device, Node, Picture, Waiting, line
from edgeshare.cli.status.service import Used
from edgeshare.cli.status.service_view import nobody, of_api_server, staleness


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
