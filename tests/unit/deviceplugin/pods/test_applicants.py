"""To whom units go for which the kubelet asked for no preference."""

import json
from typing import Any

import pytest

from deviceplugin.pods.applicants import Applicants
from deviceplugin.pods.pod_watch import BoundPods
from deviceplugin.units.ledger import Allocation, Ledger, Owner
from edgeshare.contract.accelerator_kind import GPU
from edgeshare.kube.kube import Kube
from edgeshare.kubelet.podresources import Units

UNITS = frozenset(f"GPU-A::{unit:02}" for unit in range(40))


def pod(name: str, device: str | None, *init: str) -> dict[str, Any]:
    """Of containers that have 40 percent each."""
    limits = {"resources": {"limits": {"edge/gpu-percent": "40"}}}
    assignment = {container: [device] for container in (*init, "main")}
    annotations = {} if device is None else {"edge/gpu-assignment": json.dumps(assignment)}
    return {
        "metadata": {"namespace": "team", "name": name, "uid": name, "annotations": annotations},
        "spec": {
            "nodeName": "n",
            "initContainers": [{"name": each, **limits} for each in init],
            "containers": [{"name": "main", **limits}],
        },
        "status": {"phase": "Pending"},
    }


class NoMorePods(Kube):
    """An API server that has no pods beside those that the watch told."""

    def __init__(self) -> None:
        pass

    def pods_on(self, node: str) -> list[dict[str, Any]]:
        return []


def applicants(*pods: dict[str, Any], known: set[str]) -> Applicants:
    """Of these pods the first one's init container has UNITS; ``known`` are those that the kubelet knows."""
    bound, ledger = BoundPods(NoMorePods(), "n"), Ledger()
    bound.listed(list(pods))
    owner = Owner("team", "first", "fetch", "first", False)
    ledger.put(Allocation("1", UNITS, "", owner=owner, applicant=owner))

    async def get(_: str, name: str) -> Units | None:
        return {} if name in known else None

    return Applicants(bound, ledger, get, GPU)


@pytest.mark.parametrize("device", ["GPU-A", None], ids=["assigned", "not"])
async def test_an_init_containers_units_go_to_the_next_of_its_pod(device: str | None) -> None:
    others = pod("other", device)
    (found,) = await applicants(pod("first", device, "fetch"), others, known={"first", "other"}).next_of_pod(UNITS)
    assert (found.owner.pod, found.owner.container) == ("first", "main")


async def test_they_do_not_where_the_kubelet_knows_that_pod_no_more() -> None:
    asked = applicants(pod("first", "GPU-A", "fetch"), pod("other", "GPU-A"), known={"other"})
    assert await asked.next_of_pod(UNITS) == []
    (found,) = await asked.skipped(UNITS, [])
    assert (found.owner.pod, found.owner.container) == ("other", "main")
