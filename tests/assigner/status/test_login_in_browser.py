"""The cluster's page in a real browser: who it is asked for, what is seen then, and what is not any more."""

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from sharemgr.cluster.status.page import COOKIE
from tests.kit.apiserver.api_server import READY_S, STOP_S, api_server, free_ports
from tests.kit.assigner.replicas import Replicas
from tests.kit.assigner.world import ANY, World, complete, node
from tests.kit.pages.browser import Browser, chromium

CRD = Path(__file__).parents[3] / "deploy/chart/crds/acceleratornodes.yaml"
FORM = "document.querySelector('#login')"
LIVE = "document.querySelector('#state')?.textContent === 'live'"
STALE = "/^stale since .*: who serves it does not answer$/.test(document.querySelector('#state').textContent)"
OWNERS = "[...document.querySelectorAll('.shares .owner')].map((each) => each.textContent).sort().join()"
NOTICE = "document.querySelector('#notice')"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One with nobody's token."""
    with chromium(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


def says(text: str) -> str:
    """Holds once the form says so."""
    return f"document.querySelector('#why')?.textContent.includes({text!r})"


def show(browser: Browser, token: str, namespace: str = "") -> None:
    """Fills the form in, by the keyboard alone."""
    browser.type("#token", token)
    browser.type("#namespace", namespace + Keys.ENTER)


async def test_a_token_shows_what_it_may_see_and_is_kept_until_it_is_forgotten(
    browser: Browser, world: World, replicas: Replicas
) -> None:
    a, b = world.namespace, f"{world.namespace}-b"
    with node(world, a, [(a, "web"), (b, "batch")]):
        asked = await world.serve(replicas, page=ANY)
        everybody, of_a, nobody = world.of_all("all"), world.of_one_namespace("a", a), world.token("nobody")
        await asked.until(everybody, complete(a))

        def use() -> None:
            browser.open(asked.url)
            browser.until(says("a token of Kubernetes is needed"))
            labels = (
                "[...document.querySelectorAll('input')].map((each) => each.labels[0].textContent.split(/[,;]/)[0])"
            )
            assert browser.value(labels) == ["Token of Kubernetes", "Namespace"]
            # A browser sees to that when it draws.
            browser.until("document.activeElement.id === 'token'")
            show(browser, "nonsense")
            browser.until(says("the API server does not know this token"))
            show(browser, nobody)
            browser.until(says("nobody may not list the pods of all namespaces: name one"))
            show(browser, f" {of_a} ", a)
            browser.until(LIVE)
            browser.until(f"{OWNERS} === '{a}/web/main'")
            # No script reads it, and no other site has it sent.
            assert browser.value("document.cookie") == ""
            (kept,) = browser.driver.get_cookies()
            terms = {name: kept[name] for name in ("name", "httpOnly", "secure", "sameSite")}
            assert terms == {"name": COOKIE, "httpOnly": True, "secure": True, "sameSite": "Strict"}
            # All that it may see is that namespace, and whoever comes back need not say again who he is.
            browser.open(asked.url)
            browser.until(says("may not list the pods of all namespaces"))
            browser.open(f"{asked.url}?namespace={a}")
            browser.until(LIVE)
            browser.value("document.querySelector('a[href=forget]').click()")
            browser.until(FORM)
            assert browser.driver.get_cookies() == []
            show(browser, everybody)
            browser.until(
                f"{OWNERS} === '{b}/batch/main,{a}/web/main'" if b < a else f"{OWNERS}.includes('{b}/batch/main')"
            )
            assert all("Failed to load resource" in each for each in browser.complaints())

        await asyncio.to_thread(use)


async def test_it_is_live_again_by_itself_and_asks_again_who_it_is_for_once_that_is_not_known(
    browser: Browser, world: World, replicas: Replicas
) -> None:
    async def until(condition: str) -> None:
        await asyncio.to_thread(browser.until, condition)

    with node(world, world.namespace, [(world.namespace, "web")]):
        # A port that nobody is given meanwhile who names none.
        address = f"127.0.0.1:{free_ports(1)[0]}"
        asked = await world.serve(replicas, page=address)
        await asyncio.to_thread(browser.open, f"{asked.url}forget")
        await asyncio.to_thread(show, browser, world.of_all("all"))
        await until(LIVE)
        await asked.replica.end(signal.SIGKILL)
        await until(STALE)
        # What was seen is still there.
        assert f"{world.namespace}/web/main" in browser.value(OWNERS)
        asked = await world.serve(replicas, page=address)
        await until(LIVE)
        browser.driver.delete_all_cookies()
        await asked.replica.end(signal.SIGKILL)
        await until(STALE)
        await world.serve(replicas, page=address)
        await until(FORM)


async def test_while_the_api_server_is_away_it_says_since_when_and_no_more_when_that_is_back(
    browser: Browser, tmp_path: Path, replicas: Replicas
) -> None:
    async def until(condition: str) -> None:
        await asyncio.to_thread(browser.until, condition)

    with api_server(tmp_path / "api-server") as server:
        server.define(CRD)
        world = World(server, tmp_path / "certificates", "away")
        with node(world, "n1", [("away", "web")]):
            asked = await world.serve(replicas, page=ANY)
            await asyncio.to_thread(browser.open, f"{asked.url}forget")
            await asyncio.to_thread(show, browser, world.of_all("all"))
            await until(f"{OWNERS} === 'away/web/main' && {NOTICE}.hidden")
            server.daemons.stop("api-server", STOP_S)
            away = "/^the API server does not answer the service, stale since \\d{4}-/"
            await until(f"{away}.test({NOTICE}.textContent) && !{NOTICE}.hidden")
            assert browser.value(OWNERS) == "away/web/main"
            server.daemons.start("api-server", server.plane.api_server())
            server.daemons.wait_until("api-server", server.plane.api_server_ready, READY_S)
            await until(f"{NOTICE}.hidden")
