"""A real browser without a screen: Debian's Chromium, driven by Selenium."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.common.exceptions import TimeoutException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.kit.processes.waiting import PATIENCE_S
from tests.kit.programs.packages import install, missing

PACKAGES = {"chromium": "chromium", "chromedriver": "chromium-driver"}
"""Debian's packages, by a program of each."""

FLAGS = (
    *("headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run"),
    *("disable-background-networking", "disable-component-update", "disable-sync"),
)

DESKTOP = (1280, 900)
PHONE = (360, 740)
"""CSS pixels, of a usual telephone."""

UNTIL = """
const [condition, done] = [new Function("return " + arguments[0]), arguments[arguments.length - 1]];
const look = () => {
  if (condition()) { watch.disconnect(); document.removeEventListener("focusin", look); done(); }
};
const watch = new MutationObserver(look);
document.addEventListener("focusin", look);
watch.observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
look();
"""
"""Comes back when the condition holds: it is looked at whenever the page has changed, or the keyboard is elsewhere."""


class Browser:
    """One window."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, url: str, size: tuple[int, int] = DESKTOP, scheme: str = "light") -> None:
        """Loads a page in a window of this size, with light or dark colours preferred."""
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == PHONE}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        self.prefer(scheme)
        self.driver.get(url)

    def prefer(self, scheme: str) -> None:
        """Light or dark colours."""
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def until(self, condition: str) -> None:
        """Waits until an expression of JavaScript is true of the page, or of one that takes its place. Raises
        TimeoutException."""
        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            try:
                self.driver.execute_async_script(UNTIL, condition)
            except TimeoutException:
                # At once, where the page has gone: what was looked at is no more.
                if time.monotonic() >= deadline_s:
                    raise
            else:
                return

    def value(self, expression: str) -> Any:
        """What an expression of JavaScript is."""
        return self.driver.execute_script(f"return {expression}")

    def type(self, selector: str, text: str) -> None:
        """Writes into a field, in place of what is there."""
        field = self.driver.find_element(By.CSS_SELECTOR, selector)
        field.clear()
        field.send_keys(text)

    def press(self, key: str = Keys.TAB) -> None:
        """Presses a key, wherever the focus is."""
        ActionChains(self.driver).send_keys(key).perform()

    def complaints(self) -> list[str]:
        """What its console has been told since the last time: errors, refusals of the policy, what was not found."""
        return [entry["message"] for entry in self.driver.get_log("browser")]  # type: ignore[no-untyped-call]

    def picture(self, path: Path) -> None:
        """Writes what is seen as a PNG."""
        assert self.driver.save_screenshot(str(path))


@contextmanager
def chromium(profile: Path) -> Iterator[Browser]:
    """A browser with an empty profile; gets its packages where they are missing. Raises NodeError where it cannot."""
    install(missing(PACKAGES))
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for flag in FLAGS:
        options.add_argument(f"--{flag}")
    options.add_argument(f"--user-data-dir={profile}")
    # The authorities of the cluster part's certificates are the tests' own.
    options.accept_insecure_certs = True
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService("/usr/bin/chromedriver"))
    try:
        driver.set_script_timeout(PATIENCE_S)
        yield Browser(driver)
    finally:
        driver.quit()
