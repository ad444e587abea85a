"""Which replica leads, told to the Service that kube-scheduler asks: it selects no pods, and has an EndpointSlice with
the leader's address alone. (Were only the leader ready instead, an update would wait for the others for ever.)"""

import asyncio
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlencode

from edgeshare.contract.errors import InvalidRequest, Unavailable
from edgeshare.kube.calls import Calls
from edgeshare.kube.following import pause_s
from edgeshare.kube.kube import APPLY_PATCH
from edgeshare.kube.messages import apply_query
from edgeshare.log_trouble import Trouble
from sharemgr.cluster.config import Config

logger = logging.getLogger(__name__)

MANAGER = "edgeshare-assigner"

SERVICE_LABEL = "kubernetes.io/service-name"
"""Of whose endpoints an EndpointSlice is (k8s.io/api, discovery/v1)."""

AGAIN_S = 10.0
"""So often it is told again: somebody may have changed it, or taken it away."""


@dataclass(frozen=True, slots=True)
class Announcement:
    """What is written, and where."""

    path: str
    body: dict[str, Any]


def slices_path(namespace: str) -> str:
    """Where a namespace's EndpointSlices lie."""
    return f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"


def announcement(config: Config, environment: Mapping[str, str] = os.environ) -> Announcement | None:
    """What a replica of this configuration tells while it leads; None where there is no Service. The environment says
    which pod it is in: POD_NAME, POD_UID and POD_IP. Raises InvalidRequest where it does not."""
    if config.service is None:
        return None
    try:
        name, uid, address = (environment[key] for key in ("POD_NAME", "POD_UID", "POD_IP"))
        version = ip_address(address).version
    except KeyError as error:
        why = f"{error.args[0]} is not in the environment"
        raise InvalidRequest(f"service: {why}: set it from the pod's own fields, as the chart does") from None
    except ValueError:
        raise InvalidRequest(f"service: POD_IP is {address[:80]!r}: expected an address") from None
    namespace, service = config.service.namespace, config.service.name
    path = f"{slices_path(namespace)}/{service}"
    # With the pod it goes, too, if no other replica has taken it over.
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}
    labels = {SERVICE_LABEL: service, "endpointslice.kubernetes.io/managed-by": MANAGER}
    target = {"kind": "Pod", "namespace": namespace, "name": name, "uid": uid}
    body = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": service, "labels": labels, "ownerReferences": [owner]},
        "addressType": f"IPv{version}",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}, "targetRef": target}],
        # The Service's port is found by this name.
        "ports": [{"name": "http" if config.tls is None else "https", "port": config.port, "protocol": "TCP"}],
    }
    return Announcement(f"{path}?{urlencode(apply_query(MANAGER, force=True))}", body)


async def announce(calls: Calls, what: Announcement) -> None:
    """Tells it, again and again, until cancelled."""
    trouble = Trouble(logger, "the Service does not lead here", "the Service leads here")
    while True:
        try:
            if await calls.call("PATCH", what.path, what.body, APPLY_PATCH) is None:
                raise Unavailable(f"there is nothing at {what.path.partition('?')[0]}")
        except Unavailable as error:
            trouble.fails(error)
        else:
            trouble.over()
        await asyncio.sleep(pause_s(trouble.count) if trouble.count else AGAIN_S)
