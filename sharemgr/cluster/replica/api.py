"""What the assigner asks of the API server, beside what it follows. Each is sent once: a second try would begin when
the one who asked has given up, or leads no longer."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from edgeshare.contract.errors import NotFound
from edgeshare.contract.names import GPU_ASSIGNMENT
from edgeshare.kube.calls import Calls
from edgeshare.kube.kube import MERGE_PATCH
from edgeshare.kube.messages import Conflicting, pod_path
from sharemgr.cluster.state.pods import SharePod, parse_pod


class KubeApi:
    """binding.Api, and more."""

    def __init__(self, calls: Calls, timing: Callable[[], AbstractContextManager[object]]) -> None:
        """``timing`` is entered while a Binding is with the API server."""
        self._calls = calls
        self._timing = timing

    async def bind(self, pod: SharePod) -> None:
        """See binding.Api."""
        annotations = {} if pod.assignment is None else {GPU_ASSIGNMENT: pod.assignment}
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {
                "name": pod.name,
                "uid": pod.uid,
                "resourceVersion": pod.version,
                "annotations": annotations,
            },
            "target": {"apiVersion": "v1", "kind": "Node", "name": pod.node},
        }
        binding = f"{pod_path(pod.namespace, pod.name)}/binding"
        with self._timing():
            # The binder gives it up, with all else that is asked for a bind.
            answer = await self._calls.call("POST", binding, body, timeout_s=None)
        if answer is None:
            raise Conflicting(f"the API server has no pod {pod} any more")

    async def read(self, namespace: str, name: str) -> SharePod | None:
        """See binding.Api."""
        found = await self._calls.call("GET", pod_path(namespace, name))
        return None if found is None else parse_pod(found)

    async def annotate_node(self, name: str, annotations: dict[str, str]) -> None:
        """Sets annotations of a node, with no more than the right to patch its status. Raises NotFound where there is
        none of that name, Unavailable."""
        body = {"metadata": {"annotations": annotations}}
        if await self._calls.call("PATCH", f"/api/v1/nodes/{name}/status", body, MERGE_PATCH) is None:
            raise NotFound(f"there is no Node {name}")
