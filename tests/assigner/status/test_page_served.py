"""The cluster's page: served over TLS by the cluster part as users start it, to who shows a token of a real API server,
of what real managers tell."""

from typing import Any

import aiohttp
import pytest

from sharemgr.cluster.status.page import COOKIE
from tests.kit.apiserver.api_server import done
from tests.kit.assigner.replicas import Replicas
from tests.kit.assigner.world import ANY, World, complete, first, node


def of(told: dict[str, Any], name: str) -> Any:
    """A node of a picture; None: it is not there."""
    return next((each for each in told["picture"]["nodes"] if each["name"] == name), None)


def owners(told: dict[str, Any], name: str) -> set[str]:
    """Who has a share of its devices."""
    return {share["owner"] for device in of(told, name)["devices"] for share in device["shares"]}


async def test_who_may_know_is_shown_it_and_who_may_not_is_told_why(world: World, replicas: Replicas) -> None:
    a = world.namespace
    asked = await world.serve(replicas, page=ANY)
    everybody, of_a, nobody = world.of_all("all"), world.of_one_namespace("a", a), world.token("nobody")
    unknown, few = "the API server does not know this token", "may not list the pods of all namespaces: name one"
    cases: list[tuple[str | None, str, int, str]] = [
        (None, "", 401, "a token of Kubernetes is needed"),
        ("nonsense", "", 401, unknown),
        (nobody, "", 403, few),
        (of_a, "", 403, few),
        (of_a, f"?namespace={a}-b", 403, f"may not list the pods in namespace {a}-b"),
        (of_a, f"?namespace={a}", 200, ""),
        (everybody, "", 200, ""),
    ]
    for token, query, status, why in cases:
        async with asked.page(query, token) as answer:
            script = b"page.js" if status == 200 else b"login.js"
            assert (answer.status, script in await answer.read()) == (status, True), (query, why)
            assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
            assert answer.headers["Cache-Control"] == "no-store"
        async with asked.page(f"session{query}", token) as answer:
            assert (answer.status, why in await answer.text()) == (status, True), why
            assert ("Set-Cookie" in answer.headers) is (status == 200)
        if status != 200:
            async with asked.page(f"events{query}", token) as answer:
                assert (answer.status, why in await answer.text()) == (status, True), why
    async with asked.page("", Cookie=f"{COOKIE}={everybody}") as answer:
        assert answer.status == 200


async def test_who_speaks_no_tls_is_told_nothing(world: World, replicas: Replicas) -> None:
    asked = await world.serve(replicas, page=ANY)
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientError):
            await session.get(asked.url.replace("https:", "http:"))


async def test_use_and_who_waits_are_shown_to_who_may_know_and_a_node_that_is_away_is_stale(
    world: World, replicas: Replicas
) -> None:
    a, b = world.namespace, f"{world.namespace}-b"
    with node(world, a, [(a, "web"), (b, "batch")]) as (_, manager):
        asked = await world.serve(replicas, page=ANY)
        everybody, of_a, of_b = world.of_all("all"), world.of_one_namespace("a", a), world.of_one_namespace("b", b)
        await asked.until(everybody, complete(a))
        async with asked.followed(everybody) as told:
            seen = await first(told, lambda each: of(each, a) and not of(each, a)["stale"])
            assert owners(seen, a) == {f"{a}/web/main", f"{b}/batch/main"}
            (share, _) = of(seen, a)["devices"][0]["shares"]
            assert (share["asked_percent"], share["used_percent"], share["guarantee"]) == (30, 0, "met")
            assert (seen["stale"], seen["picture"]["notice"]) == ("", "")

            def waits(each: dict[str, Any]) -> bool:
                return any(wait["who"] == f"{a}/late" for wait in each["picture"]["waiting"])

            assert not waits(seen)
            world.pod_waits()
            await first(told, waits)
            done(world.server.kubectl("delete", "pod", "late", "-n", a, "--wait=false", "--grace-period=0", "--force"))
            await first(told, lambda each: not waits(each))
            async with asked.followed(of_a, f"?namespace={a}") as own:
                assert owners(await first(own, lambda each: True), a) == {f"{a}/web/main"}
            async with asked.followed(of_b, f"?namespace={b}") as own:
                assert owners(await first(own, lambda each: True), a) == {f"{b}/batch/main"}
            manager.kill()
            stale = of(await first(told, lambda each: of(each, a)["stale"]), a)
            assert stale["stale"].startswith("stale since 2")
            assert [each["id"] for each in stale["devices"]] == [each["id"] for each in of(seen, a)["devices"]]
