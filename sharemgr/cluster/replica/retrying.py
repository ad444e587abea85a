"""Lets kube-scheduler try pods again that were turned down. It does so when a node or a pod changes; but what a GPU's
manager lets go, a moment after a pod's end, it does not see, and would wait five minutes."""

import asyncio
import logging
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice

from edgeshare.contract.errors import EdgeshareError, NotFound
from edgeshare.contract.names import GPU_RELEASED
from sharemgr.cluster.extender.assigner import Assigner
from sharemgr.cluster.extender.metrics import Metrics
from sharemgr.cluster.replica.api import KubeApi

logger = logging.getLogger(__name__)

PACE_S = 0.25
"""At most so often: each time all waiting pods are tried, and kube-scheduler itself waits a second or more before it
tries one again."""

NODES_MAX = 10
"""How many nodes are tried for a pod, where the first ones are gone."""


class Retrying:
    """Has kube-scheduler try the pods again that one assigner turned down."""

    def __init__(self, assigner: Assigner, api: KubeApi, metrics: Metrics) -> None:
        self._assigner = assigner
        self._api = api
        self._metrics = metrics
        self._news = asyncio.Event()
        self._untold = ""
        """A node that pods may fit, and that could not be annotated."""
        self._said = ""
        """Why, as the log has it."""

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
            node = self._assigner.fits_now() or self._untold
            if self._assigner.books.ledger.node(node) is None:
                # Nothing fits there any more.
                node = self._untold = ""
            if node:
                await self._tell(node)
            await asyncio.sleep(PACE_S)

    async def _tell(self, node: str) -> None:
        when = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        others = (each.inventory.node for each in self._assigner.books.ledger)
        try:
            # Any node will do, and one that is gone may still have its AcceleratorNode.
            for name in islice(dict.fromkeys([node, *others]), NODES_MAX):
                with suppress(NotFound):
                    await self._api.annotate_node(name, {GPU_RELEASED: when})
                    break
            else:
                raise NotFound(f"of {NODES_MAX} nodes that have AcceleratorNodes there is none")
        except EdgeshareError as error:
            # The next news come in a few seconds, if only of Bindings that were looked for.
            self._untold = node
            if str(error) != self._said:
                self._said = str(error)
                logger.warning("kube-scheduler is not told yet that pods may fit node %s now: %s", node, error)
        else:
            self._untold = self._said = ""
            self._metrics.retries.inc()
