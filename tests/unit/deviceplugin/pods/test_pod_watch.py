"""Reads of the API server beside a watch: what the watch tells meanwhile is the younger."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from deviceplugin.pods.pending_pods import BoundPod
from deviceplugin.pods.pod_watch import BoundPods
from edgeshare.kube.kube import Kube

Json = dict[str, Any]


def pod(name: str, uid: str) -> Json:
    containers = [{"name": "main", "resources": {"limits": {"edge/gpu-percent": "60"}}}]
    return {
        "metadata": {"namespace": "team", "name": name, "uid": uid},
        "spec": {"nodeName": "n", "containers": containers},
        "status": {"phase": "Pending"},
    }


class SlowApi(Kube):
    """An API server whose answer is of when it was asked, and comes when it is let go."""

    def __init__(self, *pods: Json) -> None:
        self._pods = pods
        self.asked, self.let_go = threading.Event(), threading.Event()

    def pods_on(self, node: str) -> list[Json]:
        self.asked.set()
        self.let_go.wait()
        return list(self._pods)

    def pod(self, namespace: str, name: str) -> Json | None:
        return next(iter(self.pods_on("n")), None)


async def read_all(pods: BoundPods) -> None:
    await pods.read_all()


async def find(pods: BoundPods) -> None:
    await pods.find([("team", "p")], lambda known: known.uid == "past")


READS = pytest.mark.parametrize("read", [read_all, find], ids=["all", "one"])


@asynccontextmanager
async def reading(api: SlowApi, pods: BoundPods, read: Callable[[BoundPods], Any]) -> AsyncIterator[None]:
    """Pods are read; the answer comes when it is left."""
    task = asyncio.create_task(read(pods))
    await asyncio.to_thread(api.asked.wait)
    try:
        yield
    finally:
        api.let_go.set()
        await task


@READS
async def test_a_pod_that_the_watch_had_not_told_is_read(read: Callable[[BoundPods], Any]) -> None:
    api = SlowApi(pod("p", "new"))
    pods = BoundPods(api, "n")
    async with reading(api, pods, read):
        pass
    assert [each.uid for each in pods] == ["new"]


@READS
async def test_a_pod_that_went_while_it_was_read_stays_gone(read: Callable[[BoundPods], Any]) -> None:
    api = SlowApi(pod("p", "gone"))
    pods = BoundPods(api, "n")
    pods.told("ADDED", pod("p", "past" if read is find else "gone"))
    async with reading(api, pods, read):
        pods.told("DELETED", pod("p", "past" if read is find else "gone"))
    assert list(pods) == []


@READS
async def test_a_pod_that_was_made_anew_while_it_was_read_is_the_new_one(read: Callable[[BoundPods], Any]) -> None:
    api = SlowApi(pod("p", "old"))
    pods = BoundPods(api, "n")
    async with reading(api, pods, read):
        pods.told("ADDED", pod("p", "new"))
    assert [each.uid for each in pods] == ["new"]


async def test_of_a_list_that_came_meanwhile_nothing_older_is_left() -> None:
    api = SlowApi(pod("p", "gone"), pod("q", "there"))
    pods = BoundPods(api, "n")
    pods.told("ADDED", pod("p", "gone"))
    async with reading(api, pods, read_all):
        pods.listed([pod("q", "there")])
    assert [each.uid for each in pods] == ["there"]


async def find_any(pods: BoundPods) -> list[BoundPod]:
    return await pods.find([("team", "p")], lambda _: False)


async def find_some(pods: BoundPods) -> list[BoundPod]:
    return await pods.until_some(list)


@pytest.mark.parametrize("waiting", [find_any, find_some])
async def test_a_kubelet_that_waits_hurries_a_list_that_was_put_off_and_goes_by_it(
    waiting: Callable[[BoundPods], Awaitable[list[BoundPod]]],
) -> None:
    pods = BoundPods(SlowApi(), "n")
    pods.listed([pod("p", "of before")])
    hurried = []

    def hurry() -> bool:
        hurried.append(True)
        asyncio.get_running_loop().call_soon(pods.listed, [pod("p", "of now")])
        return True

    pods.hurry_by(hurry)
    assert [each.uid for each in await waiting(pods)] == ["of now"]
    assert hurried == [True]
