"""What the manager takes from the counters in a client's page."""

import pytest

from cuda_hook._core import ffi
from cuda_hook.gate import GatePages
from edgeshare.contract.units import NS_PER_S as S
from sharemgr.node.clients.usage import Counters
from sharemgr.node.turns.demand import Use


class Page:
    """A client's page, and what its manager knows of it: new with each connection."""

    def __init__(self) -> None:
        self._pages = GatePages.create(1)
        self._pages.close_fds()
        self._used = ffi.addressof(self._pages._hint[0], "used")
        self._counters = Counters(0)

    def says(self, gpu_ns: int, drained_gpu_ns: int = 0) -> Use:
        """Writes what it used, in all and until it drained last; what the manager takes from that."""
        self._used.gpu_ns, self._used.drained_gpu_ns = gpu_ns, drained_gpu_ns
        use = Use()
        self._counters.add(self._pages, use, S)
        return use


@pytest.fixture
def page() -> Page:
    return Page()


def test_counters_that_go_on_are_no_lie(page: Page) -> None:
    assert [(use.gpu_ns, use.lies) for use in map(page.says, (0, 5, 5, 9))] == [
        (0, False),
        (5, False),
        (0, False),
        (4, False),
    ]


def test_a_counter_that_goes_back_is_a_lie_until_it_is_where_it_was(page: Page) -> None:
    assert [(use.gpu_ns, use.lies) for use in map(page.says, (9, 0, 8, 9, 10))] == [
        (9, False),
        (0, True),
        (0, True),
        (0, False),
        (1, False),
    ]


def test_more_until_the_last_drain_than_in_all_is_a_lie(page: Page) -> None:
    assert not page.says(9, drained_gpu_ns=9).lies
    assert page.says(9, drained_gpu_ns=10).lies


def test_a_process_that_connects_anew_begins_at_nothing_and_does_not_lie(page: Page) -> None:
    page.says(9)
    again = Page().says(0)
    assert (again.gpu_ns, again.lies) == (0, False)
