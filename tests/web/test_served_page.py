"""The page over HTTP: what it is made of, what is told by and by, to whom, and to whom not."""

import re
import signal
import socket
from html.parser import HTMLParser

import pytest

from edgeshare.cli.page.serve import is_own_host, loopback
from edgeshare.contract.errors import InvalidRequest
from tests.kit.manager.testbed import Manager, Testbed
from tests.kit.pages.served_page import ServedPage, arguments, first, held, shares
from tests.kit.processes.waiting import PATIENCE_S

SCRIPTS = ("device", "elements", "page")
HOSTILE = '</script><img src=x onerror=alert(1)> "event: picture\\n\\ndata: {}'


class Inline(HTMLParser):
    """Finds what a strict policy forbids."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = {name for name, _ in attrs}
        if tag == "style" or (tag == "script" and "src" not in names):
            self.found.append(tag)
        self.found += [name for name in names if name == "style" or name.startswith("on")]


def test_it_is_files_of_its_own_with_a_strict_policy_and_nothing_inline(page: ServedPage) -> None:
    with page.asked("/") as answer:
        policy = answer.headers["Content-Security-Policy"]
        html = answer.read().decode()
    assert "default-src 'none'" in policy
    assert not re.search("unsafe|http|\\*", policy)
    inline = Inline()
    inline.feed(html)
    assert inline.found == []
    named = re.findall(r'(?:src|href)="([^#"]+)"', html)
    assert sorted(named) == ["data:,", "page.css", "page.js"]
    imported = {"page"}
    for name, kind in (("page.css", "text/css"), *((f"{script}.js", "text/javascript") for script in SCRIPTS)):
        with page.asked(f"/{name}") as answer:
            assert (answer.status, answer.headers.get_content_type()) == (200, kind)
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            text = answer.read().decode()
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|innerHTML|outerHTML|insertAdjacent|eval", text)
        imported.update(re.findall(r'^import .* from "\./(\w+)\.js";$', text, re.MULTILINE))
    assert imported == set(SCRIPTS)


def test_who_follows_sees_allocations_come_and_go(testbed: Testbed, page: ServedPage) -> None:
    with page.followed() as told:
        assert [each["name"] for each in next(told)["picture"]["nodes"][0]["devices"]] == ["GPU 0", "GPU 1"]
        with held(testbed, "one"):
            (has,) = shares(first(told, lambda each: shares(each) != []))
            assert (has["owner"], has["asked_percent"], has["memory_mib"]) == ("team/one/main", 30, 512)
        first(told, lambda each: shares(each) == [])


def test_a_manager_that_ends_leaves_what_was_seen_as_stale_until_there_is_one_again(
    testbed: Testbed, manager: Manager, page: ServedPage
) -> None:
    with page.followed() as told:
        seen = first(told, lambda each: not each["stale"])
        manager.kill()
        stale = first(told, lambda each: each["stale"])
        assert "no share manager answers at" in stale["stale"]
        assert len(stale["picture"]["nodes"][0]["devices"]) == 2
        # Who comes now is told the same.
        with page.followed() as late:
            assert next(late)["stale"]
        assert stale["seenMs"] >= seen["seenMs"]
        testbed.manager()
        assert first(told, lambda each: not each["stale"])["seenMs"] > stale["seenMs"]


def test_a_manager_that_is_stopped_leaves_it_as_stale_too(manager: Manager, page: ServedPage) -> None:
    with page.followed() as told:
        next(told)
        manager.process.send_signal(signal.SIGSTOP)
        assert "not answer" in first(told, lambda each: each["stale"])["stale"]
        manager.process.send_signal(signal.SIGCONT)
        first(told, lambda each: not each["stale"])


def test_a_hostile_name_is_a_text_in_its_event(testbed: Testbed, page: ServedPage) -> None:
    with held(testbed, "one", command=HOSTILE), page.followed() as told:
        (has,) = shares(first(told, lambda each: shares(each) != []))
        assert has["owner"] == HOSTILE


@pytest.mark.parametrize("path", ["/", "/events", "/page.js"])
def test_another_hosts_name_is_refused(page: ServedPage, path: str) -> None:
    with page.asked(path, Host=f"rebound.example:{page.port}") as answer:
        assert answer.status == 421
        assert b"GPU" not in answer.read()
    for own in ("localhost", f"localhost:{page.port}", "127.0.0.1:1", "[::1]:9470"):
        with page.asked(path, Host=own) as answer:
            assert answer.status == 200


@pytest.mark.parametrize(
    ("host", "own"),
    [
        *((host, True) for host in ("localhost", "LocalHost:80", "127.0.0.1", "127.8.8.8:1", "[::1]", "[::1]:80")),
        *((host, False) for host in ("", "::1", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1:80")),
        *((host, False) for host in ("[fe80::1]", "evil.example:127.0.0.1", "2130706433", "0.0.0.0")),
    ],
)
def test_a_host_is_its_own_by_a_loopback_address_or_localhost_alone(host: str, own: bool) -> None:
    assert is_own_host(host) is own


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "127.1.2.3:65535", "[::1]:80"])
def test_a_loopback_address_is_listened_on(listen: str) -> None:
    assert loopback(listen) == listen


@pytest.mark.parametrize(
    "listen", ["", "9470", "localhost:80", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:²"]
)
def test_what_is_no_address_is_refused_with_what_is_expected(listen: str) -> None:
    with pytest.raises(InvalidRequest, match="expected ADDRESS:PORT"):
        loopback(listen)


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "192.0.2.1:80", "[::]:0", "[2001:db8::1]:80"])
def test_any_other_address_is_refused_in_one_line_that_says_why(testbed: Testbed, listen: str) -> None:
    told = testbed.edgeshare(*arguments(testbed, listen))
    assert told.returncode == 1
    (line,) = told.stderr.splitlines()
    assert f"--listen {listen}: the page asks nobody who he is" in line


def test_an_address_without_a_page_is_wrong_usage(testbed: Testbed) -> None:
    told = testbed.edgeshare("top", "--listen", "127.0.0.1:0")
    assert (told.returncode, "add --web" in told.stderr) == (2, True)


def test_no_manager_to_begin_with_is_one_line(testbed: Testbed) -> None:
    told = testbed.edgeshare(*arguments(testbed, "127.0.0.1:0"))
    assert told.returncode == 1
    (line,) = told.stderr.splitlines()
    assert "no share manager answers at" in line


def test_an_address_that_is_taken_is_one_line(testbed: Testbed, manager: Manager) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        told = testbed.edgeshare(*arguments(testbed, listen))
    assert told.returncode == 1
    (line,) = told.stderr.splitlines()
    assert f"--listen {listen}: cannot be listened on" in line


def test_it_ends_when_it_is_interrupted_also_while_somebody_follows(page: ServedPage) -> None:
    with page.followed() as told:
        next(told)
        page.process.send_signal(signal.SIGINT)
        assert page.process.wait(PATIENCE_S) == 0
