"""Binding a pod to its GPUs: what is reserved stays so exactly as long as its Binding may be written."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from edgeshare.contract.errors import AlreadyExists, InvalidRequest, NoRoom, NotFound, Unavailable
from edgeshare.kube.messages import Conflicting, Refused
from sharemgr.cluster.extender.assigner import Assigner
from sharemgr.cluster.extender.binding import LANDS_WITHIN_S, UNSEEN_S, Binder
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
        self.pods[asked.name] = replace(asked, version=f"{asked.version}+")

    def touch(self, uid: str) -> None:
        self.pods[uid] = replace(self.pods[uid], version=f"{self.pods[uid].version}'")

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


@asynccontextmanager
async def under_way(place: Place, asked: SharePod) -> AsyncIterator[asyncio.Event]:
    """A bind whose Binding waits at the API server until the event is set."""
    arrived, go_on = asyncio.Event(), asyncio.Event()

    async def answer(sent: SharePod) -> None:
        arrived.set()
        await go_on.wait()
        place.server.write(sent)

    place.server.answers.append(answer)
    binding = asyncio.create_task(place.bind(asked))
    await arrived.wait()
    yield go_on
    go_on.set()
    await binding


LOST = Unavailable("the connection is gone")


async def test_a_pod_is_bound_with_its_gpu_in_one_write_of_the_version_that_was_filtered() -> None:
    place = Place()
    p = place.server.make(pod("p"))
    place.assigner.filter(p, ["n", "m"])
    await place.bind(p)
    assert place.server.reads == 0
    (written,) = place.server.bindings
    assert (written.uid, written.version, written.node) == ("p", "1", "n")
    assert written.assignment == '{"main":["GPU-n-0"]}'
    assert place.free() == 40
    assert place.binder.in_doubt == 0
    assert place.assigner.asking("p") is None


async def test_a_pod_that_was_not_filtered_here_is_read_first() -> None:
    place = Place()
    p = place.server.make(pod("p"))
    await place.bind(p)
    assert place.server.reads == 1
    assert place.server.pods["p"].node == "n"
    with pytest.raises(NotFound, match="no pod ns/q"):
        await place.bind(pod("q"))
    with pytest.raises(NotFound, match="no pod ns/p with uid old"):
        await place.bind(pod("old", name="p"))


async def test_a_pod_that_does_not_fit_says_why_and_reserves_nothing() -> None:
    place = Place()
    await place.bind(place.server.make(pod("p")))
    with pytest.raises(NoRoom, match="40 of 100 units free"):
        await place.bind(place.server.make(pod("q", 50)))
    with pytest.raises(InvalidRequest, match="150"):
        await place.bind(place.server.make(pod("r", 150)))
    with pytest.raises(NotFound, match="node nowhere"):
        await place.bind(place.server.make(pod("s", 50)), "nowhere")
    assert place.free() == 40


async def test_what_is_bound_already_is_a_success_there_and_an_error_elsewhere() -> None:
    place = Place()
    p = place.server.make(pod("p"))
    await place.bind(p)
    await place.bind(p)
    with pytest.raises(AlreadyExists, match="is bound to node n already"):
        await place.bind(p, "m")
    place.assigner.pod_told("ADDED", place.server.pods["p"])
    await place.bind(p)
    with pytest.raises(AlreadyExists, match="is bound to node n already"):
        await place.bind(p, "m")
    assert len(place.server.bindings) == 1


async def test_one_that_was_bound_by_another_leader_is_held_as_soon_as_it_is_read() -> None:
    place = Place()
    place.server.make(replace(pod("p"), node="n", assignment='{"main":["GPU-n-0"]}'))
    await place.bind(pod("p"))
    assert place.free() == 40
    assert not place.server.bindings


async def test_a_second_request_while_the_first_is_under_way_is_put_off() -> None:
    place = Place()
    p = place.server.make(pod("p"))
    async with under_way(place, p):
        with pytest.raises(Unavailable, match="being bound already"):
            await place.bind(p)
        assert place.free() == 40
    assert place.server.pods["p"].node == "n"


async def test_a_binding_that_was_written_though_its_answer_was_lost_is_a_success() -> None:
    place = Place()
    p = place.server.make(pod("p"))
    place.server.answers.append(written_but(place.server, LOST))
    await place.bind(p)
    assert place.free() == 40
    assert place.binder.in_doubt == 0


async def test_one_that_is_not_written_yet_stays_reserved_and_goes_nowhere_else() -> None:
    place = Place()
    p = place.server.make(pod("p"))
    place.server.answers.append(answering(LOST))
    with pytest.raises(Unavailable, match="the connection is gone"):
        await place.bind(p)
    assert place.free() == 40
    assert place.binder.in_doubt == 1
    assert place.assigner.filter(p, ["n", "m"]).nodes == ["n"]
    with pytest.raises(AlreadyExists, match="may still be bound to node n"):
        await place.bind(p, "m")
    with pytest.raises(NoRoom):
        await place.bind(place.server.make(pod("q")))
    await place.bind(p)
    assert place.server.bindings[0] == place.server.bindings[1]
    assert place.free() == 40
    assert place.binder.in_doubt == 0


async def test_what_could_neither_be_written_nor_read_stays_reserved() -> None:
    place = Place()
    p = place.server.make(pod("p"))

    async def unread() -> None:
        raise LOST

    place.assigner.filter(p, ["n"])
    place.server.answers.append(answering(Refused("403")))
    place.server.before_reading.append(unread)
    with pytest.raises(Unavailable):
        await place.bind(p)
    assert place.binder.in_doubt == 1
    place.server.before_reading.append(unread)
    await place.settle_after(LANDS_WITHIN_S)
    assert place.free() == 40
    await place.settle_after(0)
    assert place.free() == 100


async def test_a_bind_that_takes_too_long_ends_and_its_reservation_does_not() -> None:
    place = Place()
    binder = Binder(place.assigner, place.server, 0.01, lambda: place.now_s)
    place.server.make(pod("p"))

    async def never(asked: SharePod) -> None:
        await asyncio.Event().wait()

    place.server.answers.append(never)
    with pytest.raises(Unavailable, match=r"not answered within 0\.01 s"):
        await binder.bind("ns", "p", "p", "n")
    assert binder.in_doubt == 1
    assert place.free() == 40


async def test_what_is_refused_for_sure_is_free_at_once() -> None:
    place = Place()
    p = place.server.make(pod("p"))
    place.server.answers.append(answering(Refused("403")))
    with pytest.raises(Refused):
        await place.bind(p)
    assert place.free() == 100
    assert place.binder.in_doubt == 0


async def test_a_refusal_says_nothing_of_an_earlier_request_that_may_be_under_way() -> None:
    place = Place()
    p = place.server.make(pod("p"))
    place.server.answers += [answering(LOST), answering(Refused("403"))]
    for kind in (Unavailable, Refused):
        with pytest.raises(kind):
            await place.bind(p)
    assert place.free() == 40
    # With another version an earlier request comes to nothing.
    place.server.touch("p")
    with pytest.raises(Conflicting):
        await place.bind(p)
    assert place.free() == 100


async def test_a_pod_that_was_changed_meanwhile_is_read_and_decided_again_once() -> None:
    place = Place()
    p = place.server.make(pod("p"))
    place.assigner.filter(p, ["n"])
    place.server.touch("p")
    await place.bind(p)
    assert [each.version for each in place.server.bindings] == ["1", "1'"]
    assert place.free() == 40
    q = place.server.make(pod("q", 30))
    place.assigner.filter(q, ["n"])
    place.server.touch("q")
    place.server.answers += [answering(Conflicting("")), answering(Conflicting(""))]
    with pytest.raises(Conflicting):
        await place.bind(q)
    assert place.free() == 40


async def test_one_that_another_has_bound_meanwhile_is_held_where_it_is() -> None:
    place = Place()
    p = place.server.make(pod("p"))
    place.assigner.filter(p, ["n"])
    place.server.pods["p"] = replace(p, node="m", version="2", assignment='{"main":["GPU-m-0"]}')
    with pytest.raises(AlreadyExists, match="bound to node m"):
        await place.bind(p)
    assert (place.free("n"), place.free("m")) == (100, 40)


async def test_a_pod_that_is_gone_while_its_binding_is_in_doubt_leaves_nothing() -> None:
    place = Place()
    p = place.server.make(pod("p"))
    place.server.answers.append(answering(LOST))
    with pytest.raises(Unavailable):
        await place.bind(p)
    # Of the same name, but another one.
    place.server.pods["p"] = pod("p2", name="p")
    await place.settle_after(UNSEEN_S - 1)
    assert place.free() == 40
    await place.settle_after(1)
    assert place.free() == 100
    assert place.binder.in_doubt == 0


async def test_one_in_doubt_is_given_up_when_no_request_can_be_under_way_any_more() -> None:
    place = Place()
    p = place.server.make(pod("p"))
    place.server.answers.append(answering(LOST))
    with pytest.raises(Unavailable):
        await place.bind(p)
    await place.settle_after(LANDS_WITHIN_S - 1)
    assert place.free() == 40
    await place.settle_after(1)
    assert place.free() == 100


async def test_each_new_request_for_one_in_doubt_has_the_whole_time_to_be_written() -> None:
    place = Place()
    p = place.server.make(pod("p"))
    place.server.answers += [answering(LOST), answering(LOST)]
    for _ in range(2):
        with pytest.raises(Unavailable):
            await place.bind(p)
        place.now_s += LANDS_WITHIN_S - 5
    await place.binder.settle()
    assert place.free() == 40
    await place.settle_after(5)
    assert place.free() == 100


async def test_what_was_reserved_anew_while_the_old_was_looked_up_stays_reserved() -> None:
    place = Place()
    p = place.server.make(pod("p"))
    place.server.answers += [answering(LOST), answering(Conflicting("")), answering(LOST)]
    with pytest.raises(Unavailable):
        await place.bind(p)
    place.now_s += LANDS_WITHIN_S

    async def meanwhile() -> None:
        place.server.touch("p")
        for kind in (Conflicting, Unavailable):
            with pytest.raises(kind):
                await place.bind(p)

    place.server.after_reading.append(meanwhile)
    await place.binder.settle()
    assert place.binder.in_doubt == 1
    assert place.free() == 40


async def test_what_was_read_to_be_bound_stays_held_through_a_list_that_is_older() -> None:
    place = Place()
    p = place.server.make(pod("p"))
    place.server.answers.append(written_but(place.server, LOST))
    await place.bind(p)
    place.assigner.pods_listed([])
    assert place.free() == 40
    place.assigner.pod_told("ADDED", place.server.pods["p"])
    place.assigner.pods_listed([])
    assert place.free() == 100


@pytest.mark.parametrize("is_deleted", [True, False])
async def test_a_read_that_is_behind_the_watch_brings_no_pod_back_for_good(is_deleted: bool) -> None:
    place = Place()
    p = place.server.make(pod("p"))
    place.server.answers.append(written_but(place.server, LOST))

    async def it_comes_and_ends() -> None:
        bound = place.server.pods.pop("p")
        place.assigner.pod_told("ADDED", bound)
        if is_deleted:
            place.assigner.pod_told("DELETED", bound)
        else:
            over = place.server.make(replace(bound, is_over=True))
            place.assigner.pod_told("MODIFIED", over)

    place.server.after_reading.append(it_comes_and_ends)
    place.assigner.filter(p, ["n"])
    await place.bind(p)
    await place.settle_after(UNSEEN_S)
    assert place.free() == 100


async def test_a_bound_pod_that_the_watch_never_told_of_is_looked_up_until_it_is_gone() -> None:
    place = Place()
    p = place.server.make(pod("p"))
    await place.bind(p)
    for _ in range(3):
        await place.settle_after(UNSEEN_S)
        assert place.free() == 40
    del place.server.pods["p"]
    await place.settle_after(UNSEEN_S)
    assert place.free() == 100


async def test_what_the_watch_has_told_of_is_not_looked_up() -> None:
    place = Place()
    p = place.server.make(pod("p"))
    await place.bind(p)
    place.assigner.pod_told("ADDED", place.server.pods["p"])
    reads = place.server.reads
    await place.settle_after(UNSEEN_S)
    await place.settle_after(LANDS_WITHIN_S)
    assert place.server.reads == reads
    assert place.free() == 40
