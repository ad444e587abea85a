"""What the binder asks of the API server, by threads: the client blocks."""

import asyncio

from edgeshare.kube import Kube
from edgeshare.names import GPU_ASSIGNMENT
from sharemgr.cluster.pods import SharePod, parse_pod


class KubeApi:
    """binding.Api."""

    def __init__(self, kube: Kube, timeout_s: float) -> None:
        self._kube = kube
        self._timeout_s = timeout_s

    async def bind(self, pod: SharePod) -> None:
        """See Api."""
        annotations = {} if pod.assignment is None else {GPU_ASSIGNMENT: pod.assignment}
        of = (pod.namespace, pod.name, pod.uid, pod.version, pod.node)
        await asyncio.to_thread(self._kube.bind, *of, annotations, self._timeout_s)

    async def read(self, namespace: str, name: str) -> SharePod | None:
        """See Api."""
        found = await asyncio.to_thread(self._kube.pod, namespace, name)
        return None if found is None else parse_pod(found)
