"""How a Lease is taken, renewed and given back, and what is said while the API server that has it is away. How replicas
lead by it is shown in tests/assigner."""

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator

import pytest

from edgeshare.kube.calls import Calls
from edgeshare.waiting import ended
from sharemgr.cluster.replica import lease as lease_module
from sharemgr.cluster.replica.lease import Lease, LeaseTimes
from tests.kit.apiserver.answering_server import HANG_UP, SAFETY_S, Server, answer

AWAY = [answer({"message": "away"}, 503), HANG_UP, answer(b"<html>", 500), answer({"message": "slow"}, 504)]
NOT_OURS = answer({"message": "not yours"}, 403)
TIME = "2026-01-01T00:00:00.000000Z"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/ns/leases"
LEASE = f"{LEASES}/lease"


def held(holder: str, time: str = TIME) -> bytes:
    """What the API server says of it."""
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "acquireTime": TIME, "renewTime": time}
    return answer({"metadata": {"name": "lease", "resourceVersion": "7"}, "spec": spec})


ANOTHERS = held("another")
TIMES = LeaseTimes(lease_s=4 * SAFETY_S, renew_s=2 * SAFETY_S, retry_s=0)


@pytest.fixture
def holders() -> list[str]:
    return []


@pytest.fixture
def renewals() -> list[float]:
    return []


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, holders: list[str]) -> None:
    """Half of what a Lease lasts goes by with each other holder that is seen."""
    monkeypatch.setattr(lease_module, "monotonic", lambda: len(holders) * TIMES.lease_s / 2)


@pytest.fixture
async def lease(calls: Calls, holders: list[str], renewals: list[float], clock: None) -> AsyncIterator[Lease]:
    """That is being taken, without a pause between two attempts."""
    lease = Lease(calls, "ns", "lease", "us", TIMES, renewals.append, holders.append)
    taking = asyncio.create_task(lease.take())
    yield lease
    await ended(taking)


async def test_that_it_is_not_reached_is_said_once_and_again_when_it_is_back(
    server: Server, holders: list[str], caplog: pytest.LogCaptureFixture, lease: Lease
) -> None:
    caplog.set_level(logging.INFO)
    news = [held("another", str(number)) for number in range(3)]
    server.answers = [*AWAY, NOT_OURS, *AWAY, NOT_OURS, news[0], *AWAY, *news[1:]]
    async with asyncio.timeout(SAFETY_S):
        await server.silent.wait()
    said = [record.getMessage() for record in caplog.records if record.name == lease_module.__name__]
    server.answers = [ANOTHERS]
    await lease.give_back()
    assert holders == ["another"] * 3
    assert [re.findall("[0-9]{3} ", line) for line in said] == [["503 "], ["403 "], [], ["503 "], []]
    assert said[2] == said[4] == "the Lease is reached again"


async def asked(server: Server) -> list[tuple[str, str]]:
    """What it was asked for when it has no more answers."""
    async with asyncio.timeout(SAFETY_S):
        await server.silent.wait()
    return [(each.method, each.path) for each in server.asked]


READ, WRITTEN = ("GET", LEASE), ("PUT", LEASE)


async def test_one_that_is_not_there_is_made_and_then_renewed(
    server: Server, renewals: list[float], lease: Lease
) -> None:
    server.answers = [answer({}, 404), held("us"), held("us"), held("us")]
    assert await asked(server) == [READ, ("POST", LEASES), READ, WRITTEN, READ]
    made, renewed = (json.loads(server.asked[place].body) for place in (1, 3))
    assert made["spec"] == {
        **{"holderIdentity": "us", "leaseDurationSeconds": TIMES.lease_s},
        **dict.fromkeys(("acquireTime", "renewTime"), made["spec"]["renewTime"]),
    }
    # Of that version: another that was quicker has made it another one.
    assert renewed["metadata"]["resourceVersion"] == "7"
    assert renewed["spec"]["acquireTime"] == TIME < renewed["spec"]["renewTime"]
    assert len(renewals) == 2


async def test_anothers_is_taken_when_it_was_unchanged_for_as_long_as_it_lasts(
    server: Server, renewals: list[float], lease: Lease
) -> None:
    server.answers = [ANOTHERS, *[held("another", "later")] * 2, held("us")]
    assert await asked(server) == [READ, READ, READ, WRITTEN, READ]
    assert len(renewals) == 1


async def test_where_another_was_quicker_it_is_not_ours(server: Server, renewals: list[float], lease: Lease) -> None:
    server.answers = [held(""), answer({"message": "it is another one by now"}, 409)]
    assert await asked(server) == [READ, WRITTEN, READ]
    assert renewals == []


@pytest.mark.parametrize(("holder", "written"), [("us", [WRITTEN]), ("another", [])])
async def test_what_is_given_back_is_nobodys_and_only_ours_is(
    server: Server, lease: Lease, holder: str, written: list[tuple[str, str]]
) -> None:
    await asked(server)
    server.answers = [held(holder), held("")]
    await lease.give_back()
    assert [(each.method, each.path) for each in server.asked[1:]] == [READ, *written]
    if written:
        assert json.loads(server.asked[-1].body)["spec"]["holderIdentity"] == ""
