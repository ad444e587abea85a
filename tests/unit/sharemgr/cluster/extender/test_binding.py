"""Binding a pod to its GPUs: what is reserved stays so exactly as long as its Binding may be written."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from edgeshare.contract.errors import AlreadyExists, InvalidRequest, NoRoom, NotFound, Unavailable
from edgeshare.kube.messages import Conflicting, Refused
from sharemgr.cluster.extender.binding import LANDS_WITHIN_S, UNSEEN_S, Binder
from sharemgr.cluster.state.pods import SharePod
from tests.kit.assigner.binding import LOST, Place, answering, pod, written_but


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


async def test_a_pod_as_its_binding_writes_it_is_known_until_it_was_seen() -> None:
    place = Place()
    p = place.server.make(pod("p"))
    assert place.binder.reserved("p") is None
    place.assigner.filter(p, ["n", "m"])
    await place.bind(p)
    (written,) = place.server.bindings
    assert place.binder.reserved("p") is written
    place.assigner.pod_told("ADDED", written)
    await place.binder.settle()
    assert place.binder.reserved("p") is None


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
    place.server.make(pod("p")._replace(node="n", assignment='{"main":["GPU-n-0"]}'))
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
    place.server.pods["p"] = p._replace(node="m", version="2", assignment='{"main":["GPU-m-0"]}')
    with pytest.raises(AlreadyExists, match="bound to node m"):
        await place.bind(p)
    assert (place.free("n"), place.free("m")) == (100, 40)


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
            over = place.server.make(bound._replace(is_over=True))
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
