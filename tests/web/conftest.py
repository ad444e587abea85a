"""A simulated machine with a manager, its page, and one browser for all tests of this folder."""

from collections.abc import Iterator

import pytest

from tests.kit.manager.testbed import Manager, Testbed, in_own_folder
from tests.kit.pages.browser import Browser, chromium
from tests.kit.pages.served_page import ServedPage


@pytest.fixture
def testbed() -> Iterator[Testbed]:
    """A machine of two GPUs with no manager yet."""
    with in_own_folder(Testbed, "es-web-") as testbed:
        yield testbed


@pytest.fixture
def manager(testbed: Testbed) -> Manager:
    """A manager with the default configuration."""
    return testbed.manager()


@pytest.fixture
def page(testbed: Testbed, manager: Manager) -> ServedPage:
    """The page of that manager."""
    return ServedPage(testbed)


@pytest.fixture(scope="session")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """The one browser."""
    with chromium(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def browser(chrome: Browser, testbed: Testbed) -> Iterator[Browser]:
    """It, with nothing open; at the end its console was told of nothing that the test did not take out. Until then the
    testbed is there, whose end is nothing that a page should have been told of."""
    yield chrome
    complaints = chrome.complaints()
    chrome.open("about:blank")
    assert complaints == []
