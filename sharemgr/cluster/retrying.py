"""Lets kube-scheduler try pods again that were turned down. It does so when a node or a pod changes; but what a GPU's
manager lets go, a moment after a pod's end, it does not see, and would wait five minutes."""

import asyncio
import logging
from datetime import UTC, datetime

from edgeshare.errors import Unavailable
from edgeshare.names import GPU_RELEASED
from sharemgr.cluster.api import KubeApi
from sharemgr.cluster.assigner import Assigner
from sharemgr.cluster.metrics import Metrics

logger = logging.getLogger(__name__)

PACE_S = 0.25
"""At most so often: each time all waiting pods are tried, and kube-scheduler itself waits a second or more before it
tries one again."""


class Retrying:
    """For one assigner."""

    def __init__(self, assigner: Assigner, api: KubeApi, metrics: Metrics) -> None:
        self._assigner = assigner
        self._api = api
        self._metrics = metrics
        self._news = asyncio.Event()

    def news(self) -> None:
        """Something may have been released."""
        self._news.set()

    async def run(self) -> None:
        """Until it is cancelled. At the beginning, too: nobody knows whom another leader has turned down."""
        nodes = list(self._assigner.books.ledger)
        if nodes:
            await self._tell(nodes[0].inventory.node)
        while True:
            await self._news.wait()
            self._news.clear()
            node = self._assigner.fits_now()
            if node is not None:
                await self._tell(node)
            await asyncio.sleep(PACE_S)

    async def _tell(self, node: str) -> None:
        when = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        try:
            await self._api.annotate_node(node, {GPU_RELEASED: when})
        except Unavailable as error:
            # Then the next release tells, or kube-scheduler's own five minutes.
            logger.warning("kube-scheduler is not told that pods may fit node %s now: %s", node, error)
        else:
            self._metrics.retries.inc()
