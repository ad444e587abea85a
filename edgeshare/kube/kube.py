"""The cluster's API server, as plain JSON: decoding a pod into the client's typed objects costs ten times as
much. Calls block; each raises Unavailable where the API server cannot be asked or refuses."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import urlencode

import urllib3

from edgeshare.contract.address import join_address, parse_address
from edgeshare.contract.errors import Unavailable
from edgeshare.kube.list_reader import CHUNK_BYTES, ListReader
from edgeshare.kube.messages import (
    OK,
    WATCH_S,
    Conflicting,
    Query,
    apply_query,
    check_list,
    check_watch,
    no_node,
    page_query,
    parse_answer,
    parse_change,
    pod_path,
    read_token,
    watch_query,
)

T = TypeVar("T")

CALL_TIMEOUT_S = 5
"""Well below the 30 s that the kubelet gives a container's start."""
CALL_TIMEOUT = urllib3.Timeout(total=CALL_TIMEOUT_S)

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
"""Server-side apply; JSON is YAML."""

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds its token and the API server's certificate authority."""

CONNECTIONS = 10
"""Kept open at most: two watches, and what threads ask beside them."""

WATCH_TIMEOUT = urllib3.Timeout(connect=CALL_TIMEOUT_S, read=WATCH_S + CALL_TIMEOUT_S)


class Kube:
    """An API server and the right to ask it."""

    def __init__(self, host: str, pool: urllib3.PoolManager, authorization: Callable[[], str | None]) -> None:
        """``authorization`` is asked at each call: tokens are exchanged while they are used."""
        self._host = host
        self._pool = pool
        self._authorization = authorization

    @classmethod
    def reach(cls, kubeconfig: Path | None) -> Self:
        """By a kubeconfig file, or else with the pod's service account. Raises Unavailable where there is no such
        right."""
        return cls.from_kubeconfig(kubeconfig) if kubeconfig is not None else cls.in_cluster()

    @classmethod
    def in_cluster(cls, environment: Mapping[str, str] = os.environ, folder: Path = SERVICE_ACCOUNT) -> Self:
        """With the pod's service account. Raises Unavailable where it has none."""
        host, port = (environment.get(f"KUBERNETES_SERVICE_{name}", "") for name in ("HOST", "PORT"))
        token, authority = folder / "token", folder / "ca.crt"
        if not host or not port or not token.is_file() or not authority.is_file():
            raise Unavailable(f"the pod has no service account in {folder}: mount its token")
        pool = urllib3.PoolManager(ca_certs=str(authority), maxsize=CONNECTIONS)
        address = join_address(host, port)
        try:
            is_one = parse_address(address)[1] > 0
        except ValueError:
            is_one = False
        if not is_one:
            raise Unavailable(f"KUBERNETES_SERVICE_HOST and _PORT are no address: {address[:80]!r}: set none, or both")
        return cls(f"https://{address}", pool, lambda: f"Bearer {read_token(token)}")

    @classmethod
    def from_kubeconfig(cls, path: Path) -> Self:
        """With the current context of a kubeconfig file. Raises Unavailable where it cannot be used."""
        # Loaded only for a kubeconfig: a pod with a service account does without its 18 MiB.
        from edgeshare.kube.client_library import connection  # noqa: PLC0415

        return cls(*connection(path))

    def authorization(self) -> str | None:
        """The header by which it is asked now; None where a certificate does that. Raises Unavailable where a token
        cannot be read."""
        return self._authorization()

    def pod(self, namespace: str, name: str) -> dict[str, Any] | None:
        """A pod, or None where there is none of that name."""
        return self.object_at(pod_path(namespace, name))

    def pods_on(self, node: str) -> list[dict[str, Any]]:
        """The pods that are bound to a node."""
        return self.objects("/api/v1/pods", f"spec.nodeName={node}", lambda pod: pod)[0]

    def objects(self, path: str, selector: str, keep: Callable[[dict[str, Any]], T | None]) -> tuple[list[T], str]:
        """What ``keep`` keeps of the objects at a path that the field selector picks; None: nothing. And the version to
        watch them from. Raises Expired where they changed too much meanwhile."""
        reader = ListReader(path, keep)
        while not reader.is_whole:
            response = self._open("GET", path, page_query(selector, reader.following))
            try:
                if response.status != OK:
                    check_list(path, response.status, response.read())
                with reader.page() as take:
                    for chunk in response.stream(CHUNK_BYTES):
                        take(chunk)
            except urllib3.exceptions.HTTPError as error:
                raise Unavailable(f"the API server cannot be asked (GET {path}): {error}") from error
            finally:
                response.close()
        return reader.kept, reader.version

    def changes(self, path: str, selector: str, version: str) -> Iterator[dict[str, Any]]:
        """What happens there after a version, as it happens: ``{"type": …, "object": …}``. Ends by itself now and then.
        Raises Expired where that version is too old."""
        response = self._open("GET", path, watch_query(selector, version), timeout=WATCH_TIMEOUT)
        try:
            check_watch(path, version, response.status)
            for line in _lines(response):
                yield parse_change(path, line)
        except urllib3.exceptions.HTTPError as error:
            raise Unavailable(f"a watch of {path} broke off: {error}") from error
        finally:
            response.close()

    def annotate_pod(self, namespace: str, name: str, uid: str, annotations: dict[str, str]) -> bool:
        """Sets annotations of the pod of that uid; False where there is no such pod (any more)."""
        body = {"metadata": {"uid": uid, "annotations": annotations}}
        return self._call("PATCH", pod_path(namespace, name), body=body, content_type=MERGE_PATCH) is not None

    def apply(self, path: str, manager: str, body: dict[str, Any], force: bool = True) -> dict[str, Any]:
        """Makes an object as it is given, or changes it to that, whatever others wrote; returns what it is now. Without
        ``force`` raises Conflicting where others wrote something else."""
        answer = self._call("PATCH", path, apply_query(manager, force), body, APPLY_PATCH)
        if answer is None:
            raise Unavailable(f"the API server has no kind of object at {path}: apply what the chart installs")
        return answer

    def create(self, path: str, body: dict[str, Any]) -> None:
        """Makes an object in the folder at a path. Raises Conflicting where there is one of its name."""
        if self._call("POST", path, body=body) is None:
            raise Unavailable(f"the API server has nothing at {path}: make its namespace first")

    def replace(self, path: str, body: dict[str, Any]) -> None:
        """Puts an object in the place of the version that it was read as. Raises Conflicting where it has been changed
        or deleted since."""
        if self._call("PUT", path, body=body) is None:
            raise Conflicting(f"the API server has nothing at {path} any more: read it anew")

    def object_at(self, path: str) -> dict[str, Any] | None:
        """An object, or None where there is none at that path."""
        return self._call("GET", path)

    def delete(self, path: str) -> bool:
        """Deletes an object; False where there is none at that path."""
        return self._call("DELETE", path) is not None

    def node(self, name: str) -> dict[str, Any] | None:
        """A node, or None where there is none of that name."""
        return self.object_at(f"/api/v1/nodes/{name}")

    def patch_node_status(self, name: str, body: dict[str, Any]) -> None:
        """Changes a node's status, or its annotations; None takes something from it. Resources are set in capacity and
        allocatable together: with the capacity alone they are usable only after the kubelet's next tick."""
        if self._call("PATCH", f"/api/v1/nodes/{name}/status", body=body, content_type=MERGE_PATCH) is None:
            raise Unavailable(no_node(name))

    def event(self, component: str, about: dict[str, str], warning: bool, reason: str, message: str) -> None:
        """Writes an event, as `kubectl describe` shows it. ``about`` is an object reference: apiVersion,
        kind, name, …"""
        # Events about what is in no namespace lie in this one; the kubelet's do too.
        namespace = about.get("namespace", "default")
        now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        body = {
            "metadata": {"generateName": f"{about['name']}.", "namespace": namespace},
            "involvedObject": about,
            "type": "Warning" if warning else "Normal",
            "reason": reason,
            "message": message,
            "source": {"component": component, "host": os.uname().nodename},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        self._call("POST", f"/api/v1/namespaces/{namespace}/events", body=body)

    def _call(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: dict[str, Any] | None = None,
        content_type: str = JSON,
    ) -> dict[str, Any] | None:
        response = self._open(method, path, query, body, content_type)
        try:
            content = response.read()
        except urllib3.exceptions.HTTPError as error:
            raise Unavailable(f"the API server cannot be asked ({method} {path}): {error}") from error
        return parse_answer(method, path, response.status, content)

    def _open(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: dict[str, Any] | None = None,
        content_type: str = JSON,
        timeout: urllib3.Timeout = CALL_TIMEOUT,
    ) -> Any:
        headers = {"Accept": JSON, "Content-Type": content_type}
        authorization = self._authorization()
        if authorization:
            headers["Authorization"] = authorization
        try:
            return self._pool.request(
                method,
                f"{self._host}{path}?{urlencode(query or [])}",
                body=None if body is None else json.dumps(body).encode(),
                headers=headers,
                timeout=timeout,
                # urllib3's own default asks four times, each for as long: whoever wants another try makes it.
                retries=False,
                preload_content=False,
            )
        except urllib3.exceptions.HTTPError as error:
            raise Unavailable(f"the API server cannot be asked ({method} {path}): {error}") from error


def _lines(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    left = b""
    for chunk in response.stream(None):
        *lines, left = (left + chunk).split(b"\n")
        yield from (line for line in lines if line)
