"""An API server as far as the plugin can tell: real HTTP, with the few objects that a test puts into it, and watches of
them."""

import copy
import threading
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

from edgeshare.contract.names import ACCELERATOR_NODES
from tests.kit.apiserver.server_side_apply import apply_labels

WAKE_S = 0.5
"""How often a watch looks whether it should end."""


class ApiServer:
    """Pods by (namespace, name), nodes by name, the events that were written, and switches for bad days."""

    def __init__(self) -> None:
        self.pods: dict[tuple[str, str], dict[str, Any]] = {}
        """Changed by ``put_pod`` and ``end_pod``, so that watches tell of it."""
        self.nodes: dict[str, dict[str, Any]] = {}
        self.accelerator_nodes: dict[str, dict[str, Any]] = {}
        self.features: dict[tuple[str, str], dict[str, Any]] | None = {}
        """NodeFeature objects by (namespace, name); None where node-feature-discovery is not installed."""
        self.events: list[dict[str, Any]] = []
        self.reads = 0
        self._told: dict[str, int] = {}
        """Path → the version up to which a watch of it was told; from the watch's begin on."""
        self.pages: list[int] = []
        """How many pods each page of a list of them had."""
        self.patches = 0
        self.applies = 0
        self.broken = False
        self.nonsense = b""
        """What it answers whatever is asked, as something else at its address would."""
        self.refused: set[str] = set()
        """Methods that whoever asks has no right to."""
        self.before_apply: Callable[[], None] = lambda: None
        """What somebody else does just before a node is labelled."""
        self.no_annotations = False
        """Whoever annotates a pod is refused."""
        self.closed = False
        self.silent = False
        """It takes calls, and answers none until it is no longer silent."""
        self.unanswered: list[str] = []
        """Method and path of all that it left unanswered while it was."""
        self._version = 1
        self._log: list[tuple[int, str, dict[str, Any]]] = []
        """(version, path, event) of each change."""
        self._changed = threading.Condition()
        self._hold_back = False

    def labels(self, node: str = "n1") -> dict[str, str]:
        """A node's."""
        found: dict[str, str] = self.nodes[node]["metadata"].get("labels", {})
        return found

    def put_pod(
        self,
        name: str,
        uid: str,
        limits: dict[str, dict[str, str]],
        annotations: dict[str, str] | None = None,
        init: dict[str, dict[str, str]] | None = None,
    ) -> None:
        """A pod of namespace team on node n1 whose containers have these limits."""
        pod = {
            "metadata": {"namespace": "team", "name": name, "uid": uid, "annotations": annotations or {}},
            "spec": {
                "nodeName": "n1",
                "containers": [{"name": key, "resources": {"limits": value}} for key, value in limits.items()],
                "initContainers": [
                    {"name": key, "resources": {"limits": value}} for key, value in (init or {}).items()
                ],
            },
            "status": {"phase": "Pending"},
        }
        known = self.pods.get(("team", name))
        self.pods["team", name] = pod
        self.tell("/api/v1/pods", "MODIFIED" if known and known["metadata"]["uid"] == uid else "ADDED", pod)

    def end_pod(self, name: str) -> None:
        """It is deleted."""
        self.tell("/api/v1/pods", "DELETED", self.pods.pop(("team", name)))

    def tell(self, path: str, kind: str, thing: dict[str, Any]) -> None:
        """Something happened, that watches tell of."""
        with self._changed:
            self._version += 1
            thing["metadata"]["resourceVersion"] = str(self._version)
            self._log.append((self._version, path, {"type": kind, "object": copy.deepcopy(thing)}))
            self._changed.notify_all()

    def hold_back(self, held: bool) -> None:
        """Watches tell of nothing while they are held back, and of all afterwards."""
        with self._changed:
            self._hold_back = held
            self._changed.notify_all()

    def be_silent(self, silent: bool) -> None:
        """Answers no call, but for the watches that are under way; or all of them."""
        with self._changed:
            self.silent = silent
            self._changed.notify_all()

    def wait_until_it_answers(self, method: str, url: str) -> None:
        """Returns at once where it does."""
        with self._changed:
            if self.silent:
                self.unanswered.append(f"{method} {urlsplit(url).path}")
            self._changed.wait_for(lambda: not self.silent or self.closed)

    def close(self) -> None:
        """Ends the watches, and answers whoever still waits."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()

    def watch(self, url: str) -> Iterator[dict[str, Any]]:
        """What a watch tells, until there are no more or the server is broken."""
        address = urlsplit(url)
        seen = self._told[address.path] = int(parse_qs(address.query)["resourceVersion"][0])
        while not self.closed and not self.broken:
            with self._changed:
                fresh = [] if self._hold_back else [entry for entry in self._log if entry[0] > seen]
                if not fresh:
                    self._changed.wait(WAKE_S)
            for version, path, event in fresh:
                seen = version
                if path == address.path:
                    yield event
                    self._told[path] = version

    def all_told(self, path: str = "/api/v1/pods") -> bool:
        """Whether a watch was told of all that happened there. Who watches has taken in what it listed."""
        return self._told.get(path, 0) >= max((version for version, where, _ in self._log if where == path), default=1)

    def answer(self, method: str, url: str, content_type: str, body: Any) -> tuple[int, Any]:
        """Status and object of one call."""
        if self.broken:
            return 503, {"message": "etcd is away"}
        if method in self.refused:
            return 403, {"message": f'User "somebody" cannot {method} there'}
        address = urlsplit(url)
        query = {key: values[0] for key, values in parse_qs(address.query).items()}
        match (method, address.path.strip("/").split("/")[2:]):
            case ("GET", ["pods"]):
                assert query["fieldSelector"] == "spec.nodeName=n1"
                page = self._list(list(self.pods.values()), query)
                self.pages.append(len(page["items"]))
                return 200, page
            case ("GET", ["namespaces", namespace, "pods", name]):
                self.reads += 1
                return found(self.pods.get((namespace, name)))
            case ("PATCH", ["namespaces", namespace, "pods", name]):
                assert content_type == "application/merge-patch+json"
                return self._annotate(namespace, name, body)
            case ("GET", ["nodes"]):
                return 200, self._list(list(self.nodes.values()), query)
            case ("GET", ["nodes", name]):
                return found(self.nodes.get(name))
            case ("PATCH", ["nodes", name]):
                assert content_type == "application/apply-patch+yaml"
                return self._label(name, query, body)
            case (_, ["v1alpha1", "namespaces", namespace, "nodefeatures", name]):
                return self._feature(method, (namespace, name), content_type, body)
            case ("PATCH", ["nodes", name, "status"]):
                assert content_type == "application/merge-patch+json"
                self.patches += 1
                node = self.nodes.get(name)
                if node is None:
                    return found(None)
                for field, values in body["status"].items():
                    node["status"].setdefault(field, {}).update(values)
                return found(node)
            case ("POST", ["namespaces", _, "events"]):
                self.events.append(body)
                return 201, body
            case ("GET", ["v1alpha1", "acceleratornodes"]):
                assert query["fieldSelector"] == "metadata.name=n1"
                return 200, self._list(list(self.accelerator_nodes.values()), query)
            case ("PATCH", ["v1alpha1", "acceleratornodes", name]):
                assert content_type == "application/apply-patch+yaml"
                assert query["force"] == "true"
                self.applies += 1
                known = name in self.accelerator_nodes
                self.accelerator_nodes[name] = body
                self.tell(ACCELERATOR_NODES, "MODIFIED" if known else "ADDED", body)
                return 200, body
        return 405, {"message": f"{method} {url} is not served here"}

    def _list(self, items: list[dict[str, Any]], query: dict[str, str]) -> dict[str, Any]:
        """A page, as large as is asked for."""
        begin = int(query.get("continue", 0))
        end = begin + int(query.get("limit", len(items)))
        following = {"continue": str(end)} if end < len(items) else {}
        return {"metadata": {"resourceVersion": str(self._version), **following}, "items": items[begin:end]}

    def _label(self, name: str, query: dict[str, str], body: dict[str, Any]) -> tuple[int, Any]:
        self.before_apply()
        self.applies += 1
        node = self.nodes.get(name)
        # Applying to what is not there makes it, unless the uid says that it has to be there.
        assert "uid" in body["metadata"]
        if node is None or node["metadata"]["uid"] != body["metadata"]["uid"]:
            return 409, {"message": "Precondition failed: UID in precondition"}
        manager, force = query["fieldManager"], query["force"] == "true"
        if causes := apply_labels(node, manager, body["metadata"]["labels"], force):
            return 409, {"message": "Apply failed with conflicts", "details": {"causes": causes}}
        return 200, node

    def _feature(self, method: str, key: tuple[str, str], content_type: str, body: Any) -> tuple[int, Any]:
        if self.features is None:
            return 404, {"message": "the server could not find the requested resource"}
        if method == "PATCH":
            assert content_type == "application/apply-patch+yaml"
            self.applies += 1
            self.features[key] = body
        return found(self.features.pop(key, None) if method == "DELETE" else self.features.get(key))

    def _annotate(self, namespace: str, name: str, body: dict[str, Any]) -> tuple[int, Any]:
        if self.no_annotations:
            return 403, {"message": "only who may set assignments writes them"}
        pod = self.pods.get((namespace, name))
        if pod is not None and pod["metadata"]["uid"] != body["metadata"]["uid"]:
            return 409, {"message": "another pod of that name"}
        if pod is not None:
            pod["metadata"]["annotations"].update(body["metadata"]["annotations"])
            self.tell("/api/v1/pods", "MODIFIED", pod)
        return found(pod)


def found(thing: Any) -> tuple[int, Any]:
    """200 and the object, or 404."""
    return (404, {"message": "not found"}) if thing is None else (200, thing)
