"""The server, without TLS."""

import logging
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.kit.assigner.asker import Running


@pytest.fixture(autouse=True)
def no_errors(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """What a client does is no error."""
    yield
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.fixture
async def running() -> AsyncIterator[Running]:
    running = Running()
    async with running.server.running(None) as url:
        running.port = int(url.rpartition(":")[2])
        yield running
