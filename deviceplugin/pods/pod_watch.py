"""The pods that are bound to this node, as an own watch tells of them: the first it tells of a pod is its binding."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from deviceplugin.pods.pending_pods import BoundPod, Name
from deviceplugin.pods.pod_spec import assignment_text, slim
from edgeshare.kube.kube import Kube
from edgeshare.kube.threaded import ask
from edgeshare.waiting import Change

BEHIND_S = 0.2
"""How far the watch may be behind the kubelet's before the pod is read; 90 ms were seen."""

T = TypeVar("T")


class BoundPods:
    """The pods of one node. ``listed`` and ``changed`` are for the watch; the rest asks."""

    def __init__(self, kube: Kube, node_name: str) -> None:
        self._kube = kube
        self._node_name = node_name
        self._pods: dict[Name, BoundPod] = {}
        self._unknown: set[Name] = set()
        """Names of which the API server, when it was asked, knew no pod of this node, or only a past one."""
        self._lists = 0
        """How often all were told."""
        self._hurry: Callable[[], bool] = lambda: False
        self._change = Change()
        self._readers: list[set[Name]] = []
        """Of each read that is under way the names of which the watch has told meanwhile."""

    def __iter__(self) -> Iterator[BoundPod]:
        return iter(tuple(self._pods.values()))

    def hurry_by(self, hurry: Callable[[], bool]) -> None:
        """What is called where a kubelet waits: asks for a list that was put off, and says whether one is to come."""
        self._hurry = hurry

    def next_change(self) -> asyncio.Event:
        """Set when the pods are no longer what they are now."""
        return self._change.next

    def listed(self, pods: list[dict[str, Any]]) -> None:
        """Takes in a list of all pods of the node."""
        before, self._pods = self._pods, {}
        for pod in pods:
            self._put(pod, before)
        self._heard(*before, *self._pods)
        self._unknown.clear()
        self._lists += 1
        self._change.tell()

    def told(self, kind: str, pod: dict[str, Any]) -> None:
        """A pod came, changed or went."""
        name = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        self._heard(name)
        if kind != "DELETED":
            self._put(pod, self._pods)
        elif name in self._pods and self._pods[name].uid == pod["metadata"]["uid"]:
            del self._pods[name]
        self._change.tell()

    def now(self, namespace: str, name: str, uid: str) -> BoundPod | None:
        """The pod of that name and uid, as far as is known without asking."""
        found = self._pods.get((namespace, name))
        return found if found is not None and found.uid == uid else None

    def saw_the_end(self, namespace: str, name: str, uid: str) -> bool:
        """Whether the pod is over, or gone, as far as the watch has told; False while it has told nothing."""
        known = self.now(namespace, name, uid)
        return bool(self._lists) and (known is None or known.is_over)

    async def find(self, names: Iterable[Name], is_past: Callable[[BoundPod], bool]) -> list[BoundPod]:
        """The pods of these names, which the kubelet lists. For those that are not known, or of which only a past one
        of the same name is, the watch is waited for, and then they are read. Raises Unavailable where that cannot be
        done."""
        wanted = list(names)

        def missing() -> list[Name]:
            known = self._pods
            return [
                name for name in wanted if name not in self._unknown and (name not in known or is_past(known[name]))
            ]

        await self._catch_up()
        if missing() and self._lists:
            await self._wait_until(lambda: not missing())
        for namespace, name in missing():
            with self._reading() as put:
                read = await ask(self._kube.pod, namespace, name)
                if read is not None and (read.get("spec") or {}).get("nodeName") == self._node_name:
                    put(read)
                    # A kubelet that was killed over a pod's admission has left no trace of it: the next one admits the
                    # pod anew, with whatever it was taken for meanwhile.
                    if (known := self.now(namespace, name, read["metadata"]["uid"])) is not None:
                        known.ended = False
            if (namespace, name) in missing():
                self._unknown.add((namespace, name))
        return [pod for name in wanted if (pod := self._pods.get(name)) is not None and not is_past(pod)]

    async def read_all(self) -> None:
        """Takes in all that the API server has, whatever the watch told before. Raises Unavailable."""
        with self._reading() as put:
            for read in await ask(self._kube.pods_on, self._node_name):
                put(read)

    async def until_some(self, what: "Callable[[BoundPods], list[T]]") -> list[T]:
        """What is found among them; where there is nothing, the watch is waited for, and then all pods are read. Raises
        Unavailable where that cannot be done."""
        await self._catch_up()
        if not what(self):
            await self._wait_until(lambda: bool(what(self)))
        if not what(self):
            await self.read_all()
        return what(self)

    @contextmanager
    def _reading(self) -> Iterator[Callable[[dict[str, Any]], None]]:
        """What takes in a pod that is read meanwhile, unless the watch tells of it until then, which is younger."""
        told: set[Name] = set()
        self._readers.append(told)

        def put(read: dict[str, Any]) -> None:
            if (read["metadata"]["namespace"], read["metadata"]["name"]) not in told:
                self._put(slim(read), self._pods)

        try:
            yield put
        finally:
            self._readers = [each for each in self._readers if each is not told]

    def _heard(self, *names: Name) -> None:
        for told in self._readers:
            told.update(names)

    def _put(self, pod: dict[str, Any], before: dict[Name, BoundPod]) -> None:
        name = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        known = before.get(name)
        if known is not None and known.uid == pod["metadata"]["uid"]:
            known.json = pod
        else:
            known = BoundPod(pod, assignment_text(pod))
        self._pods[name] = known
        self._unknown.discard(name)

    async def _catch_up(self) -> None:
        """What was lost sight of may be gone, or another one by now."""
        lists = self._lists
        if self._hurry():
            await self._wait_until(lambda: self._lists > lists)

    async def _wait_until(self, condition: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(BEHIND_S):
                while not condition():
                    await self._change.next.wait()
        except TimeoutError:
            return
