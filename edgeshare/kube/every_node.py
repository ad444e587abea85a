"""What is done at each node of a cluster in turn, whatever one of them says."""

from collections.abc import Callable, Iterator

from edgeshare.contract.errors import EdgeshareError, NotFound, Unavailable
from edgeshare.kube.kube import Kube


def taken_from_every_node(kube: Kube, take: Callable[[str], list[str]], ours: str) -> Iterator[tuple[str, list[str]]]:
    """Has ``take`` take from each node what is ``ours``; yields the node's name with what was taken, by name. Raises
    Unavailable at the end, with the reason of each node that has it still."""
    left = []
    names, _ = kube.objects("/api/v1/nodes", "", lambda node: str(node["metadata"]["name"]))
    for name in names:
        try:
            yield name, take(name)
        except NotFound:
            # It has left the cluster meanwhile.
            continue
        except EdgeshareError as error:
            left.append(f"{name}: {error}")
    if left:
        raise Unavailable(f"{len(left)} nodes have {ours} still: {'; '.join(left)}")
