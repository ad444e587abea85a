"""A cluster whose status is asked: a real API server, the cluster part as users start it, and its nodes' managers."""

import json
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import pytest
import yaml
from click.testing import CliRunner
from grpc.aio import AioRpcError, Channel

from edgeshare.cli import cli
from edgeshare.contract.names import STATUS_CLIENT_NAME
from edgeshare.kube.kube import APPLY_PATCH
from edgeshare.v1.allocations_pb2 import Allocation, Owner
from edgeshare.v1.cluster_pb2 import ClusterQuery, ClusterState, GetClusterStatusRequest, WatchClusterRequest
from edgeshare.v1.cluster_pb2_grpc import ClusterStatusStub
from sharemgr.cluster.status.rights import ACCESS_REVIEWS
from tests.kit.apiserver.api_server import ApiServer
from tests.kit.assigner.replicas import Replica, Replicas
from tests.kit.manager.testbed import Manager, Testbed, in_own_folder
from tests.kit.processes.waiting import until

SAFETY_S = 120
ANY = "127.0.0.1:0"
"""Any port that is free, of this machine alone."""
SERVED_AS = "edgeshare-status.edgeshare.svc"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
OPTIONS = (("grpc.ssl_target_name_override", SERVED_AS),)


def own_address() -> str:
    """One of this machine that is no loopback: an EndpointSlice takes no such."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        # Nothing is sent. (TEST-NET-2, RFC 5737)
        probe.connect(("198.51.100.1", 9))
        return str(probe.getsockname()[0])


def made(folder: Path) -> Path:
    """The folder, with what `edgeshare sharemgr certificates` makes there."""
    words = ["sharemgr", "certificates", "--folder", str(folder), "--status"]
    CliRunner().invoke(cli, words, catch_exceptions=False)
    return folder


class World:
    """Objects of the API server that no other test has."""

    def __init__(self, server: ApiServer, folder: Path, name: str) -> None:
        """``folder`` is where its certificates will lie."""
        self.server = server
        self.certificates = made(folder)
        self.namespace = name
        """Of the Service, and of those who ask."""
        for namespace in (name, f"{name}-b"):
            server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        # Kubernetes' own `view` is put together by a controller, which is not there.
        reads = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}
        server.ask("POST", f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": [reads]})

    def node(self, name: str, pods: list[tuple[str, str]]) -> None:
        """A node's AcceleratorNode: one GPU, of which these pods, by namespace and name, have a tenth each."""
        device = {"id": "GPU-0", "kind": "gpu", "model": "T4", "memoryMiB": 8192, "healthy": True}
        allocations = [
            {
                **{"id": f"a{place}", "devices": ["GPU-0"], "unitsEach": 10, "memoryMiB": 100, "container": "main"},
                "pod": {"namespace": namespace, "name": pod, "uid": f"u{place}"},
            }
            for place, (namespace, pod) in enumerate(pods)
        ]
        counts = {"deviceCount": 1, "healthyCount": 1, "allocationCount": len(pods)}
        self._put(
            "/apis/share.edge/v1alpha1/acceleratornodes",
            {
                **{"apiVersion": "share.edge/v1alpha1", "kind": "AcceleratorNode", "metadata": {"name": name}},
                "status": {**counts, "devices": [device], "allocations": allocations},
            },
        )

    def manager(self, port: int, *nodes: str) -> None:
        """An endpoint of the managers' Service for each of these nodes, at one port."""
        labels = {"kubernetes.io/service-name": "managers"}
        self._put(
            f"/apis/discovery.k8s.io/v1/namespaces/{self.namespace}/endpointslices",
            {
                **{"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4"},
                "metadata": {"name": f"managers-{nodes[0]}", "namespace": self.namespace, "labels": labels},
                "endpoints": [
                    {"addresses": [own_address()], "nodeName": node, "conditions": {"ready": True}} for node in nodes
                ],
                "ports": [{"name": "status", "port": port, "protocol": "TCP"}],
            },
        )

    def pod_waits(self) -> None:
        """A pod `late` of its namespace, which asks for 60 % of a GPU and has no node."""
        folder = f"/api/v1/namespaces/{self.namespace}"
        self.server.ask("POST", f"{folder}/serviceaccounts", {"metadata": {"name": "default"}})
        spec = {"containers": [{"name": "main", "image": "x", "resources": {"limits": {"edge/gpu-percent": "60"}}}]}
        self.server.ask("POST", f"{folder}/pods", {"metadata": {"name": "late"}, "spec": spec})

    def token(self, name: str, *rights: tuple[str, str]) -> str:
        """That of a new service account, once it has these rights; each is a ClusterRole in a folder of bindings."""
        accounts = f"/api/v1/namespaces/{self.namespace}/serviceaccounts"
        self.server.ask("POST", accounts, {"metadata": {"name": name}})
        account = {"kind": "ServiceAccount", "name": name, "namespace": self.namespace}
        for folder, role in rights:
            binding = {"roleRef": {"kind": "ClusterRole", "name": role}, "subjects": [account]}
            self.server.ask("POST", f"{RBAC}/{folder}", {"metadata": {"name": f"{self.namespace}-{name}"}, **binding})
            # The API server learns of it by a watch, and the cluster part goes by a refusal for seconds.
            until(partial(self._has, name, folder, role), f"{name} has the rights of {role}")
        token: str = self.server.ask("POST", f"{accounts}/{name}/token", {"spec": {}})["status"]["token"]
        return token

    def _has(self, name: str, folder: str, role: str) -> bool:
        """Whether a service account has the first right of a role, where a folder of bindings says."""
        rule = self.server.ask("GET", f"{RBAC}/clusterroles/{role}")["rules"][0]
        names = {"group": "apiGroups", "resource": "resources", "verb": "verbs"}
        asked = {key: rule[of][0] for key, of in names.items()}
        if folder.startswith("namespaces/"):
            asked["namespace"] = folder.split("/")[1]
        who = {"user": f"system:serviceaccount:{self.namespace}:{name}", "resourceAttributes": asked}
        return bool(self.server.ask("POST", ACCESS_REVIEWS, {"spec": who})["status"]["allowed"])

    def of_one_namespace(self, name: str, namespace: str) -> str:
        """The token of one who may read the pods of a namespace."""
        return self.token(name, (f"namespaces/{namespace}/rolebindings", self.namespace))

    def of_all(self, name: str) -> str:
        """The token of one who may read the pods of all."""
        return self.token(name, ("clusterrolebindings", self.namespace))

    def config(self, page: str) -> dict[str, Any]:
        """The cluster part's, with its ``page`` at that address; empty: it has none."""
        managers = {**self.files("status-client"), "service": {"namespace": self.namespace, "name": "managers"}}
        own = self.files("status")
        del own["authority"]
        status = {"address": "127.0.0.1:0", **own, "managers": managers, "page_address": page}
        return {"kubeconfig": str(self.server.kubeconfig), "status": status}

    async def serve(self, replicas: Replicas, page: str = "", **more: Any) -> "Asked":
        """The cluster part, with its ``page`` at that address."""
        replica = await replicas.start_command(**{**self.config(page), **more})
        line = await replica.said("the cluster's status at ")
        if not more:
            await replica.until_ready()
        root = (self.certificates / "ca.crt").read_bytes()
        url = (await replica.said("the cluster's page at ")).rpartition(" ")[2] if page else ""
        return Asked(replica, line.partition("status at ")[2].partition(",")[0], root, url)

    def files(self, name: str) -> dict[str, str]:
        """What a configuration says of a certificate that the command made."""
        of = {"certificate": f"{name}.crt", "private_key": f"{name}.key", "authority": "ca.crt"}
        return {key: str(self.certificates / file) for key, file in of.items()}

    def _put(self, folder: str, thing: dict[str, Any]) -> None:
        path = f"{folder}/{thing['metadata']['name']}?fieldManager=tests&force=true"
        self.server.ask("PATCH", path, thing, APPLY_PATCH)


class Asked:
    """A cluster part that can be asked."""

    def __init__(self, replica: Replica, address: str, root: bytes, url: str) -> None:
        """``root``: whom it is trusted for having been signed by; ``url``: its page's."""
        self.replica = replica
        self.address = address
        self.root = root
        self.url = url

    def channel(self) -> Channel:
        return grpc.aio.secure_channel(self.address, grpc.ssl_channel_credentials(self.root), OPTIONS)

    async def get(self, token: str | None, namespace: str = "", pod: str = "", after: str = "") -> ClusterState:
        """What is answered to who has this token."""
        request = GetClusterStatusRequest(query=ClusterQuery(namespace=namespace, pod=pod), after=after)
        async with self.channel() as channel:
            stub = ClusterStatusStub(channel)
            return await stub.GetClusterStatus(request, metadata=_metadata(token), timeout=SAFETY_S)

    @asynccontextmanager
    async def page(self, path: str, token: str | None = None, **headers: str) -> AsyncIterator[aiohttp.ClientResponse]:
        """What is answered to a browser, and to another program that shows this token in a header."""
        trust = ssl.create_default_context(cadata=self.root.decode())
        shown = headers if token is None else {**headers, "Authorization": f"Bearer {token}"}
        timeout = aiohttp.ClientTimeout(SAFETY_S)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            asking = session.get(f"{self.url}{path}", ssl=trust, server_hostname=SERVED_AS, headers=shown)
            async with asking as answer:
                yield answer

    @asynccontextmanager
    async def followed(self, token: str, query: str = "") -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
        """What who follows the page is told by and by, of pictures."""
        async with self.page(f"events{query}", token) as answer:
            assert (answer.status, answer.content_type) == (200, "text/event-stream")
            yield _pictures(answer)

    async def refused(self, token: str | None, namespace: str = "", pod: str = "") -> tuple[str, str]:
        """With which code, and which words."""
        with pytest.raises(AioRpcError) as told:
            await self.get(token, namespace, pod)
        return told.value.code().name, told.value.details() or ""

    async def watch_refused(self, token: str | None, interval_ns: int) -> tuple[str, str]:
        """The same of a watch of all."""
        async with self.channel() as channel:
            stub = ClusterStatusStub(channel)
            watch = stub.WatchCluster(WatchClusterRequest(interval_ns=interval_ns), metadata=_metadata(token))
            with pytest.raises(AioRpcError) as told:
                await anext(aiter(watch))
        return told.value.code().name, told.value.details() or ""

    async def until(self, token: str, holds: Any) -> ClusterState:
        """The first that is told a watch and for which something holds."""
        async with self.channel() as channel:
            stub = ClusterStatusStub(channel)
            request = WatchClusterRequest(interval_ns=1_000_000_000)
            async for state in stub.WatchCluster(request, metadata=_metadata(token), timeout=SAFETY_S):
                if holds(state):
                    return state
        raise AssertionError("the watch ended")


async def _pictures(answer: aiohttp.ClientResponse) -> AsyncIterator[dict[str, Any]]:
    text = b""
    async for chunk in answer.content.iter_any():
        *events, text = (text + chunk).split(b"\n\n")
        for event in events:
            if event.startswith(b"event: picture\n"):
                yield json.loads(event.partition(b"data: ")[2])


async def first(told: AsyncIterator[dict[str, Any]], holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The first picture for which something holds."""
    async for each in told:
        if each["picture"] is not None and holds(each):
            return each
    raise AssertionError("no more is told")


def _metadata(token: str | None) -> tuple[tuple[str, str], ...]:
    return () if token is None else (("authorization", f"Bearer {token}"),)


@contextmanager
def answering(certificate: Path, answer: bytes) -> Iterator[int]:
    """A port where whoever asks for a node's status gets this, from who has this certificate."""
    handler = grpc.unary_unary_rpc_method_handler(lambda request, context: answer)
    service = grpc.method_handlers_generic_handler("edgeshare.v1.ShareStatus", {"GetNodeStatus": handler})
    server = grpc.server(ThreadPoolExecutor(1), handlers=[service])
    shown = (certificate.with_suffix(".key").read_bytes(), certificate.read_bytes())
    port = server.add_secure_port("[::]:0", grpc.ssl_server_credentials([shown]))
    server.start()
    try:
        yield port
    finally:
        server.stop(None).wait()


@contextmanager
def silent() -> Iterator[int]:
    """A port where connections are taken and nothing is ever said."""
    with socket.create_server(("", 0)) as listener:
        yield listener.getsockname()[1]


@contextmanager
def node(
    world: World, name: str, owners: list[tuple[str, str]], clients: str = STATUS_CLIENT_NAME
) -> Iterator[tuple[Testbed, Manager]]:
    """A node whose manager has an allocation of 30 % for each of these pods, on one GPU."""
    config = yaml.safe_dump({"remote_status": {"address": ":0", **world.files("managers"), "clients": [clients]}})
    with in_own_folder(Testbed, "es-status-") as testbed, ExitStack() as stack:
        manager = testbed.manager(config)
        line = next(line for line in manager.log().splitlines() if "over TLS" in line)
        calls = stack.enter_context(testbed.calls())
        for place, (namespace, pod) in enumerate(owners):
            owner = Owner(namespace=namespace, pod=pod, pod_uid=f"u{place}", container="main")
            asked = Allocation(id=f"a{place}", device_ids=[testbed.uuids[0]], request_percent=30, owner=owner)
            held = calls.hold(asked, wait_for_manager=False)
            next(held)
            stack.callback(held.close)
        world.node(name, owners)
        world.manager(int(line.partition("status at ")[2].partition(",")[0].rpartition(":")[2]), name)
        yield testbed, manager


def complete(name: str) -> Callable[[ClusterState], bool]:
    """Whether this node has told, and tells now."""
    return lambda state: any(node.node == name and node.status.devices and not node.error for node in state.nodes)
