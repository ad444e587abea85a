"""A Binding that may or may not have been written: what is reserved stays so until that is known."""

import pytest

from edgeshare.contract.errors import AlreadyExists, NoRoom, Unavailable
from edgeshare.kube.messages import Conflicting, Refused
from sharemgr.cluster.extender.binding import LANDS_WITHIN_S, UNSEEN_S
from tests.kit.assigner.binding import LOST, Place, answering, pod


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
