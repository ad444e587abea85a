"""A cluster's devices and how they are used, as the cluster part's service tells it (docs/run/cluster-status.md), and
the pods that wait for a node, which the API server tells by the same right."""

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

import grpc

from edgeshare.cli.status.cluster import waiting_pods
from edgeshare.client import CALL_TIMEOUT_S, CHANNEL_OPTIONS
from edgeshare.contract.address import parse_address
from edgeshare.contract.errors import InvalidRequest, Unavailable
from edgeshare.contract.text import in_one_line
from edgeshare.kube.kube import Kube
from edgeshare.rpc import error_from
from edgeshare.shown.used import Used
from edgeshare.shown.waiting_pods import LINE_MAX
from edgeshare.v1.cluster_pb2 import ClusterQuery, ClusterState, GetClusterStatusRequest
from edgeshare.v1.cluster_pb2_grpc import ClusterStatusStub

UNREACHED = ("failed to connect", "errors resolving", "DNS resolution failed")
"""How gRPC begins what it says of a connection that was never made."""

NO_TRUST = ("Tls handshake failed", "verification check failed")
"""What it says of one that failed by a certificate."""


@dataclass(frozen=True, slots=True)
class Service:
    """Where the cluster's status is told, and of whom it is asked."""

    address: str
    authority: Path
    """Of who signed its certificate."""
    name: str
    """What its certificate names."""
    namespace: str
    """Empty: of all."""


@contextmanager
def asking(service: Service, kube: Kube) -> Iterator[Callable[[], Used]]:
    """Gives what asks it, with the token that reaches the API server. Raises InvalidRequest for an address or an
    authority that is none. What it gives raises Unavailable, Unauthenticated, Forbidden, NotFound and NoRoom as the
    service tells them, and InvalidRequest where a kubeconfig has no token."""
    credentials = grpc.ssl_channel_credentials(_authority(service.authority))
    options = (*CHANNEL_OPTIONS, ("grpc.ssl_target_name_override", service.name))
    with grpc.secure_channel(_address(service.address), credentials, options) as channel:
        yield partial(_ask, ClusterStatusStub(channel), service, kube)


def _ask(stub: ClusterStatusStub, service: Service, kube: Kube) -> Used:
    authorization = kube.authorization()
    if authorization is None:
        raise InvalidRequest(
            "--cluster-status: the kubeconfig's user has no token, and is known by no other means there: name a "
            "--kubeconfig that has one, as of `kubectl create token`"
        )
    whole = ClusterState(more=True)
    while whole.more:
        after = whole.nodes[-1].node if whole.nodes else ""
        request = GetClusterStatusRequest(query=ClusterQuery(namespace=service.namespace), after=after)
        part = _call(stub, request, authorization, service.address)
        if part.more and (not part.nodes or part.nodes[-1].node <= after):
            raise Unavailable(
                f"--cluster-status {service.address}: tells no end of its nodes: is it another version's?"
            )
        whole.MergeFrom(part)
        whole.more = part.more
    try:
        waiting, unknown = waiting_pods(kube, service.namespace), ""
    except Unavailable as error:
        # The service tells use without the API server.
        waiting, unknown = [], str(error)
    return Used(whole, waiting, unknown, service.namespace)


def _call(stub: ClusterStatusStub, request: GetClusterStatusRequest, authorization: str, address: str) -> ClusterState:
    try:
        return stub.GetClusterStatus(request, metadata=(("authorization", authorization),), timeout=CALL_TIMEOUT_S)
    except grpc.RpcError as error:
        call = cast(grpc.Call, error)  # every error of a call is the call itself
        text = in_one_line(call.details() or call.code().name, LINE_MAX)
        raise error_from(call.code(), f"--cluster-status {address}: {_advised(call.code(), text)}") from error


def _advised(code: grpc.StatusCode, text: str) -> str:
    """What is said, with what may help; ``text`` is gRPC's, or the service's own."""
    if code is grpc.StatusCode.UNAVAILABLE and not text.startswith(UNREACHED):
        return f"it was reached, and does not tell now: {text}"
    if any(each in text for each in NO_TRUST):
        return f"{text}: do --cluster-status-ca and -name fit its certificate?"
    if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
        return f"{text}: is it there, or the port-forward to it?"
    return text


def _address(text: str) -> str:
    try:
        host, port = parse_address(text)
    except ValueError as error:
        raise InvalidRequest(f"--cluster-status {text}: {error}") from error
    if not host or not port:
        raise InvalidRequest(f"--cluster-status {text}: expected HOST:PORT, as in 127.0.0.1:9467")
    return text


def _authority(path: Path) -> bytes:
    try:
        # gRPC says of a file without a certificate no more than that nobody answers.
        ssl.create_default_context(cafile=str(path))
        return path.read_bytes()
    except OSError as error:
        raise InvalidRequest(f"--cluster-status-ca {path}: cannot be used as an authority: {error}") from error
