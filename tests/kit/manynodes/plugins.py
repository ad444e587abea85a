"""A stand-in for the device plugins of all nodes: keeps each node's AcceleratorNode as its plugin would, a moment after
pods came and went."""

import asyncio
from collections import Counter
from collections.abc import Callable

from deviceplugin.cluster.accelerator_node import accelerator_node
from deviceplugin.retry_loop import PAUSE_S
from deviceplugin.units.ledger import Allocation, Owner, Terms
from edgeshare.contract.assignment import parse_assignment
from edgeshare.contract.devices import Accelerator
from edgeshare.contract.errors import Unavailable
from edgeshare.contract.health import Health
from edgeshare.contract.names import ACCELERATOR_NODES
from edgeshare.contract.units import parse_request_percent, unit_id
from edgeshare.kube.kube import Kube
from tests.kit.manynodes.bound import Bound, BoundPods
from tests.kit.manynodes.nodes import devices

ALLOCATED_S = 0.1
"""From a Binding until the kubelet has had the plugin hand out units."""
RELEASED_S = 0.2
"""From the end of a pod until the node's manager has let its allocation go."""

AT_ONCE = 8
AGAIN_S = 0.5
MANAGER = "edgeshare-deviceplugin"


class Plugins:
    """Of all nodes at once. A node's object is written once for all that happened on it meanwhile."""

    def __init__(self, kube: Kube, bound: BoundPods) -> None:
        self._kube = kube
        self._made: dict[str, dict[str, Allocation]] = {}
        """By node and pod's uid."""
        self._to_write: dict[str, None] = {}
        self._more = asyncio.Event()
        self._quiet = asyncio.Event()
        self._due = 0
        """Pods whose moment has not passed."""
        self._writing: set[str] = set()
        bound.tell(self._bound, self._gone)

    async def run(self) -> None:
        """Write what is to be written, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(self._write_on())

    async def until_written(self) -> None:
        """Return when all is written of what happened until now."""
        while self._due or self._to_write or self._writing:
            self._quiet.clear()
            await self._quiet.wait()

    def _bound(self, pod: Bound) -> None:
        self._later(ALLOCATED_S, self._allocate, pod)

    def _gone(self, pod: Bound) -> None:
        self._later(RELEASED_S, self._release, pod)

    def _later(self, after_s: float, what: Callable[[Bound], None], pod: Bound) -> None:
        def now() -> None:
            self._due -= 1
            what(pod)
            self._quiet.set()

        self._due += 1
        asyncio.get_running_loop().call_later(after_s, now)

    def _allocate(self, pod: Bound) -> None:
        there = self._made.setdefault(pod.node, {})
        ids = self._ids(pod, there)
        _, units = parse_request_percent(pod.percent)
        there[pod.uid] = Allocation(
            f"gpu-{pod.uid}",
            frozenset(unit_id(gpu, unit) for gpu in ids for unit in range(units)),
            "",
            Owner("default", pod.name, "main", pod.uid),
            Terms(units, memory_mib=pod.memory_mib),
            memory_mib=pod.memory_mib,
        )
        self._changed(pod.node)

    def _release(self, pod: Bound) -> None:
        if self._made.get(pod.node, {}).pop(pod.uid, None) is not None:
            self._changed(pod.node)

    def _ids(self, pod: Bound, there: dict[str, Allocation]) -> tuple[str, ...]:
        """The devices that the pod was assigned; without an assignment those of which most is left."""
        if pod.assignment is not None:
            return parse_assignment(pod.assignment)[Accelerator.GPU]["main"]
        count, _ = parse_request_percent(pod.percent)
        taken = Counter(unit.partition("::")[0] for each in there.values() for unit in each.unit_ids)
        gpus = sorted((device.id for device in devices(pod.node)), key=lambda gpu: taken[gpu])
        return tuple(gpus[:count])

    def _changed(self, node: str) -> None:
        self._to_write[node] = None
        self._more.set()

    def _written(self, node: str) -> None:
        self._writing.discard(node)
        self._more.set()
        self._quiet.set()

    async def _write_on(self) -> None:
        while True:
            # One at a time of each node: of two writes the older one may come last.
            while (node := next((each for each in self._to_write if each not in self._writing), None)) is None:
                self._more.clear()
                await self._more.wait()
            del self._to_write[node]
            described = [(device, Health()) for device in devices(node)]
            body = accelerator_node(node, node, described, list(self._made[node].values()))
            self._writing.add(node)
            try:
                await asyncio.to_thread(self._kube.apply, f"{ACCELERATOR_NODES}/{node}", MANAGER, body)
            except Unavailable:
                # As the plugin does: an API server that is too busy is asked again.
                await asyncio.sleep(AGAIN_S)
                self._changed(node)
            finally:
                # Not at once again, as the plugin does it.
                asyncio.get_running_loop().call_later(PAUSE_S, self._written, node)
