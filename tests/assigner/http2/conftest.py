"""A server that speaks HTTP/2, for the tests of this folder."""

import gc
import logging
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.kit.apiserver.certificates import Authority
from tests.kit.assigner.http2_client import Running, Verbs


@pytest.fixture(autouse=True)
def no_errors(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """What a client does is no error, and nothing raised is lost."""
    gc.freeze()  # What was there before is not the test's: to walk over all of it was a third of what they take.
    yield
    gc.collect()
    assert not [one for at in ("call", "teardown") for one in caplog.get_records(at) if one.levelno >= logging.ERROR]


@pytest.fixture
async def verbs() -> Verbs:
    return Verbs()


@pytest.fixture
async def running(authority: Authority, verbs: Verbs) -> AsyncIterator[Running]:
    running = Running(authority, verbs)
    async with running.server.running(running.context("edgeshare")) as running.url:
        yield running
        verbs.go_on.set()
