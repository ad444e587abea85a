"""The page in a real browser: what one sees, reaches by the keyboard, and has read to him."""

import json
from contextlib import ExitStack
from typing import Any

import pytest
from selenium.webdriver.common.keys import Keys

from edgeshare.http.web import STREAMS_MAX
from tests.kit.apiserver.api_server import free_ports
from tests.kit.manager.busy import burn
from tests.kit.manager.testbed import Manager, Testbed
from tests.kit.pages.browser import DESKTOP, PHONE, Browser
from tests.kit.pages.served_page import ServedPage, held

HOSTILE = "<img src=x onerror=document.title='had'><script>document.title='had'</script>&lt;"
LONG = "x" * 200

LIVE = "document.querySelector('#state').textContent === 'live'"
STALE = "/^stale since \\d\\d:\\d\\d:\\d\\d: ./.test(document.querySelector('#state').textContent)"
TWO_GPUS = "document.querySelectorAll('.card').length === 2"
OWNERS = "[...document.querySelectorAll('.shares .owner')].map((each) => each.textContent)"

CONTRASTS = """
const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
const rgb = (colour) => {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = colour;
  canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data];
};
const light = (colour) => rgb(colour).slice(0, 3)
  .map((each) => each / 255)
  .map((each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4))
  .reduce((sum, each, place) => sum + each * [0.2126, 0.7152, 0.0722][place], 0);
const ground = (of) => {
  const colour = getComputedStyle(of).backgroundColor;
  return of.parentElement && rgb(colour)[3] === 0 ? ground(of.parentElement) : colour;
};
const texts = [...document.body.querySelectorAll("*")].filter((each) =>
  each.checkVisibility() && [...each.childNodes].some((child) => child.nodeType === 3 && child.data.trim()));
return texts.map((each) => {
  const [dark, bright] = [light(getComputedStyle(each).color), light(ground(each))].sort((one, other) => one - other);
  return [each.textContent, (bright + 0.05) / (dark + 0.05)];
});
"""
"""Of each text that is seen its contrast to what is behind it (WCAG 2.2, relative luminance)."""


def has_owners(*names: str) -> str:
    """Holds once both GPUs are drawn, of which one may be before the other, and these have a share, and nobody else."""
    return f"{TWO_GPUS} && JSON.stringify({OWNERS}) === {json.dumps(json.dumps(names, separators=(',', ':')))}"


def test_it_fills_with_devices_and_who_has_them(browser: Browser, testbed: Testbed, page: ServedPage) -> None:
    with held(testbed, "one"):
        browser.open(page.url)
        browser.until(has_owners("team/one/main"))
        browser.until(LIVE)
        titles = "[...document.querySelectorAll('.card h3')].map((each) => each.textContent)"
        assert browser.value(titles) == ["GPU 0", "GPU 1"]
        assert "asked 30 % · limit 100 % · used 0 % · 0 of 512 MiB" in browser.value(
            "document.querySelector('.has').textContent"
        )
        assert browser.value("document.querySelector('.badge.good').textContent") == "healthy"


def test_it_is_live(browser: Browser, testbed: Testbed, page: ServedPage) -> None:
    browser.open(page.url)
    browser.until(has_owners())
    with held(testbed, "one"):
        browser.until(has_owners("team/one/main"))
        with held(testbed, "two"):
            browser.until(has_owners("team/one/main", "team/two/main"))
    browser.until(has_owners())


def test_what_is_used_fills_its_bar_and_draws_a_line(browser: Browser, testbed: Testbed, page: ServedPage) -> None:
    burn(testbed, "busy", "--kernel-us", "1000", percent=40)
    browser.open(page.url)
    used = "[...document.querySelectorAll('.row')].find((row) => row.firstChild.textContent === 'Used')"
    # At once: what is used may be less in the next picture.
    label = f"{used}?.querySelector('.bar')?.getAttribute('aria-label')"
    drawn = f"{used}?.querySelector('.part')?.clientWidth > 10"
    browser.until(f"{drawn} && {label}.startsWith('Used: env SIMGPU_TAG=busy')")
    line = "document.querySelector('svg path.k0')?.getAttribute('d')?.startsWith('M')"
    browser.until(f"/now [1-9]/.test(document.querySelector('svg').getAttribute('aria-label')) && {line}")


def test_a_device_that_is_lost_is_told_with_its_reason(browser: Browser, testbed: Testbed, page: ServedPage) -> None:
    browser.open(page.url)
    browser.until(TWO_GPUS)
    testbed.fault("lost", "--gpu", "1")
    browser.until("document.querySelector('.badge.bad')?.textContent === 'not healthy'")
    assert "GPU is lost" in browser.value("document.querySelector('.card:has(.badge.bad) .cause').textContent")


def test_without_its_manager_it_is_stale_and_is_live_again_by_itself(
    browser: Browser, testbed: Testbed, manager: Manager, page: ServedPage
) -> None:
    browser.open(page.url)
    browser.until(f"{LIVE} && {TWO_GPUS}")
    manager.kill()
    browser.until(STALE)
    # What was seen is still there.
    assert browser.value(TWO_GPUS)
    testbed.manager()
    browser.until(LIVE)


def test_without_its_server_it_is_stale_and_is_live_again_by_itself(
    browser: Browser, testbed: Testbed, manager: Manager
) -> None:
    # At a port that nobody is given meanwhile who names none.
    page = ServedPage(testbed, free_ports(1)[0])
    browser.open(page.url)
    browser.until(LIVE)
    page.process.kill()
    page.process.wait()
    browser.until(STALE)
    again = ServedPage(testbed, page.port)
    browser.until(LIVE)
    # That it did not reach it, and nothing else.
    assert all(f"{page.url}events - Failed to load resource" in each for each in browser.complaints())
    assert again.process.poll() is None


def test_one_follower_too_many_says_so_and_is_live_when_another_has_gone(
    browser: Browser, testbed: Testbed, page: ServedPage
) -> None:
    with ExitStack() as others:
        for _ in range(STREAMS_MAX):
            next(others.enter_context(page.followed()))
        browser.open(page.url)
        browser.until(f"document.querySelector('#state').textContent.endsWith(': {STREAMS_MAX} follow already')")
    browser.until(LIVE)
    assert all(f"{page.url}events - Failed to load resource" in each for each in browser.complaints())


def test_hostile_names_are_shown_as_they_are(browser: Browser, testbed: Testbed, page: ServedPage) -> None:
    with held(testbed, "one", command=HOSTILE):
        browser.open(page.url)
        browser.until(has_owners(HOSTILE))
        assert browser.value("document.querySelectorAll('img, .card script').length") == 0
        assert browser.value("document.title") == "edgeshare"


def focused(browser: Browser) -> str:
    """What the keyboard is at: the text of its first part."""
    return str(browser.value("(document.activeElement.querySelector('.owner') ?? document.activeElement).textContent"))


def test_the_keyboard_goes_from_the_skip_link_through_all_allocations_and_opens_them(
    browser: Browser, testbed: Testbed, page: ServedPage
) -> None:
    with held(testbed, "one"), held(testbed, "two"):
        browser.open(page.url)
        browser.until(has_owners("team/one/main", "team/two/main"))
        order = []
        for _ in range(3):
            browser.press(Keys.TAB)
            order.append(focused(browser))
            assert browser.value("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        assert order == ["To the devices", "team/one/main", "team/two/main"]
        browser.press(Keys.ENTER)
        facts = "[...document.activeElement.parentElement.querySelectorAll('dt')].map((each) => each.textContent)"
        browser.until(f"{facts}.includes('longest wait')")
        # What is open, and where the keyboard is, stays so when others come.
        with held(testbed, "three"):
            browser.until(f"{OWNERS}.length === 3")
            assert browser.value("document.activeElement.parentElement.open")
            assert focused(browser) == "team/two/main"


def test_each_bar_and_line_has_a_text_and_each_card_a_name(
    browser: Browser, testbed: Testbed, page: ServedPage
) -> None:
    with held(testbed, "one"):
        browser.open(page.url)
        browser.until(has_owners("team/one/main"))
        each = "(each) => [each.getAttribute('role'), each.getAttribute('aria-label')]"
        labels = browser.value(f"[...document.querySelectorAll('.bar, figure:not([hidden]) svg')].map({each})")
        assert ["img", "Asked: team/one/main 30 %"] in labels
        assert ["img", "Memory asked: team/one/main 512 of 8192 MiB"] in labels
        assert all(role == "img" and label for role, label in labels)
        tree = browser.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        named = {(value(node, "role"), value(node, "name")) for node in tree}
        assert named >= {("main", ""), ("status", ""), ("article", "GPU 0"), ("article", "GPU 1"), ("heading", "GPU 0")}


def value(node: dict[str, Any], name: str) -> str:
    """What a node of the accessibility tree has there."""
    return str(node.get(name, {}).get("value", ""))


@pytest.mark.parametrize(("size", "columns"), [(DESKTOP, 2), (PHONE, 1)], ids=["desktop", "phone"])
def test_nothing_is_wider_than_the_window(
    browser: Browser, testbed: Testbed, page: ServedPage, size: tuple[int, int], columns: int
) -> None:
    with held(testbed, "one", command=LONG):
        browser.open(page.url, size)
        browser.until(has_owners(LONG))
        assert browser.value("document.documentElement.scrollWidth") <= size[0]
        lefts = browser.value(
            "[...document.querySelectorAll('.card')].map((each) => each.getBoundingClientRect().left)"
        )
        assert len(set(lefts)) == columns


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_is_readable_in_the_colours_that_are_preferred(
    browser: Browser, testbed: Testbed, page: ServedPage, scheme: str
) -> None:
    testbed.fault("lost", "--gpu", "1")
    with held(testbed, "one"):
        browser.open(page.url, scheme=scheme)
        browser.until("document.querySelector('.badge.bad') && document.querySelector('.shares .owner')")
        contrasts = browser.driver.execute_script(CONTRASTS)
        assert len(contrasts) > 20
        assert [each for each in contrasts if each[1] < 4.5] == []
        assert browser.value("matchMedia('(prefers-color-scheme: dark)').matches") is (scheme == "dark")
        ground = browser.value("getComputedStyle(document.body).backgroundColor")
        browser.prefer("light" if scheme == "dark" else "dark")
        assert browser.value("getComputedStyle(document.body).backgroundColor") != ground


def test_nothing_moves_for_who_prefers_that(browser: Browser, testbed: Testbed, page: ServedPage) -> None:
    with held(testbed, "one"):
        browser.open(page.url)
        browser.until(has_owners("team/one/main"))
        duration = "getComputedStyle(document.querySelector('.part')).transitionDuration"
        assert browser.value(duration) == "0s"
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
        assert browser.value(duration) != "0s"
