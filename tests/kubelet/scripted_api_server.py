"""An API server as far as the plugin can tell: real HTTP, with the few objects that a test puts into it."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml


class ApiServer:
    """Pods by (namespace, name), nodes by name, the events that were written, and a switch for a bad day."""

    def __init__(self) -> None:
        self.pods: dict[tuple[str, str], dict[str, Any]] = {}
        self.nodes: dict[str, dict[str, Any]] = {}
        self.events: list[dict[str, Any]] = []
        self.reads = 0
        self.patches = 0
        self.broken = False

    def put_pod(
        self,
        name: str,
        uid: str,
        limits: dict[str, dict[str, str]],
        annotations: dict[str, str] | None = None,
        init: dict[str, dict[str, str]] | None = None,
    ) -> None:
        """A pod of namespace team on node n1 whose containers have these limits."""
        self.pods["team", name] = {
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

    def answer(self, method: str, url: str, content_type: str, body: Any) -> tuple[int, Any]:
        """Status and object of one call."""
        if self.broken:
            return 503, {"message": "etcd is away"}
        address = urlsplit(url)
        match (method, address.path.strip("/").split("/")[2:]):
            case ("GET", ["pods"]):
                assert parse_qs(address.query) == {"fieldSelector": ["spec.nodeName=n1"]}
                return 200, {"items": list(self.pods.values())}
            case ("GET", ["namespaces", namespace, "pods", name]):
                self.reads += 1
                return found(self.pods.get((namespace, name)))
            case ("GET", ["nodes", name]):
                return found(self.nodes.get(name))
            case ("PATCH", ["nodes", name, "status"]):
                assert content_type == "application/merge-patch+json"
                self.patches += 1
                node = self.nodes.get(name)
                for field, values in body["status"].items() if node else ():
                    node["status"].setdefault(field, {}).update(values)
                return found(node)
            case ("POST", ["namespaces", _, "events"]):
                self.events.append(body)
                return 201, body
        return 405, {"message": f"{method} {url} is not served here"}


def found(thing: Any) -> tuple[int, Any]:
    """200 and the object, or 404."""
    return (404, {"message": "not found"}) if thing is None else (200, thing)


@contextmanager
def serving(folder: Path) -> Iterator[tuple[ApiServer, Path]]:
    """An API server and a kubeconfig that leads to it."""
    api = ApiServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            assert self.headers["Authorization"] == "Bearer open sesame"
            status, thing = api.answer(self.command, self.path, self.headers["Content-Type"], body)
            content = json.dumps(thing).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_PATCH = do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            """A test's output is not the place."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        kubeconfig = folder / "kubeconfig"
        address = f"http://127.0.0.1:{server.server_port}"
        kubeconfig.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "it",
                    "contexts": [{"name": "it", "context": {"cluster": "it", "user": "me"}}],
                    "clusters": [{"name": "it", "cluster": {"server": address}}],
                    "users": [{"name": "me", "user": {"token": "open sesame"}}],
                }
            )
        )
        yield api, kubeconfig
        server.shutdown()
