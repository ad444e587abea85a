"""Where pods are bound: an API server that answers each request as the test has it, and the binder before it."""

from collections.abc import Callable, Coroutine

from edgeshare.contract.errors import Unavailable
from edgeshare.kube.messages import Conflicting
from sharemgr.cluster.extender.assigner import Assigner
from sharemgr.cluster.extender.binding import Binder
from sharemgr.cluster.placement.policies import DEFAULT, POLICIES
from sharemgr.cluster.state.books import AcceleratorNode
from sharemgr.cluster.state.nodes import Device, Inventory
from sharemgr.cluster.state.pods import SharePod, parse_pod

Answer = Callable[[SharePod], Coroutine[None, None, None]]


def pod(uid: str, percent: int = 60, name: str = "") -> SharePod:
    limits = {"edge/gpu-percent": str(percent)}
    return parse_pod(
        {
            "metadata": {"namespace": "ns", "name": name or uid, "uid": uid, "resourceVersion": "1"},
            "spec": {"containers": [{"name": "main", "resources": {"limits": limits}}]},
        }
    )


class Server:
    """An API server that keeps the preconditions of a Binding, and answers each request as the test has it."""

    def __init__(self) -> None:
        self.pods: dict[str, SharePod] = {}
        self.bindings: list[SharePod] = []
        self.reads = 0
        self.answers: list[Answer] = []
        """To the next Bindings; then as they are carried out."""
        self.before_reading: list[Callable[[], Coroutine[None, None, None]]] = []
        self.after_reading: list[Callable[[], Coroutine[None, None, None]]] = []

    def make(self, made: SharePod) -> SharePod:
        self.pods[made.name] = made
        return made

    def write(self, asked: SharePod) -> None:
        there = self.pods.get(asked.name)
        if there is None or there.uid != asked.uid or there.version != asked.version or there.node:
            raise Conflicting("another pod, another version, or bound")
        self.pods[asked.name] = asked._replace(version=f"{asked.version}+")

    def touch(self, uid: str) -> None:
        self.pods[uid] = self.pods[uid]._replace(version=f"{self.pods[uid].version}'")

    async def bind(self, asked: SharePod) -> None:
        self.bindings.append(asked)
        if self.answers:
            await self.answers.pop(0)(asked)
        else:
            self.write(asked)

    async def read(self, namespace: str, name: str) -> SharePod | None:
        self.reads += 1
        if self.before_reading:
            await self.before_reading.pop(0)()
        found = self.pods.get(name)
        if self.after_reading:
            await self.after_reading.pop(0)()
        return found


class Place:
    """An assigner of one node, its binder and its API server, and the time that they have."""

    def __init__(self, gpus: int = 1) -> None:
        self.now_s = 0.0
        self.server = Server()
        self.assigner = Assigner(POLICIES[DEFAULT])
        self.books = self.assigner.books
        for name in ("n", "m"):
            inventory = Inventory(name, tuple(Device(f"GPU-{name}-{place}", "T4", 1000) for place in range(gpus)))
            self.assigner.node_told("ADDED", AcceleratorNode(inventory))
        self.binder = Binder(self.assigner, self.server, 60.0, lambda: self.now_s)

    async def bind(self, asked: SharePod, node: str = "n") -> None:
        await self.binder.bind(asked.namespace, asked.name, asked.uid, node)

    async def settle_after(self, after_s: float) -> None:
        self.now_s += after_s
        await self.binder.settle()

    def free(self, node: str = "n") -> int:
        there = self.books.ledger.node(node)
        assert there is not None
        return sum(there.free(gpu)[0] for gpu in there.inventory.devices)


def answering(error: Exception) -> Answer:
    async def answer(asked: SharePod) -> None:
        raise error

    return answer


def written_but(server: Server, error: Exception) -> Answer:
    async def answer(asked: SharePod) -> None:
        server.write(asked)
        raise error

    return answer


LOST = Unavailable("the connection is gone")
