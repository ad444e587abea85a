import logging

import pytest

from deviceplugin.node_events import PENDING_MAX, NodeEvents, Reason
from edgeshare.contract.errors import Unavailable


class Server:
    """Where events are written."""

    def __init__(self) -> None:
        self.away = False
        self.written: list[tuple[str, str]] = []

    async def warn(self, reason: str, message: str) -> None:
        if self.away:
            raise Unavailable("the API server is away")
        self.written.append((reason, message))


async def test_a_trouble_is_told_once_until_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    node_events, server = NodeEvents(), Server()
    for messages in (["a"], ["a"], ["a", "b"], [], ["a"]):
        node_events.tell(Reason.DEVICE_MISSING, messages)
    assert node_events.news.is_set()
    await node_events.write(server.warn)
    assert [message for _, message in server.written] == ["a", "b", "a"]
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING] == ["a", "b", "a"]
    assert not node_events.news.is_set()


async def test_kinds_of_trouble_do_not_end_each_other() -> None:
    node_events, server = NodeEvents(), Server()
    node_events.tell(Reason.CONFIG_REFUSED, ["a"])
    node_events.tell(Reason.DRIVER_BROKEN, [])
    node_events.tell(Reason.CONFIG_REFUSED, ["a"])
    await node_events.write(server.warn)
    assert server.written == [("ConfigRefused", "a")]
    assert node_events.are_there(Reason.CONFIG_REFUSED, Reason.CONFIG_UNKNOWN)
    assert not node_events.are_there(Reason.DRIVER_BROKEN)


async def test_what_cannot_be_written_is_kept_and_bounded() -> None:
    node_events, server = NodeEvents(), Server()
    server.away = True
    for number in range(PENDING_MAX + 5):
        node_events.tell(Reason.DRIVER_BROKEN, [str(number)])
    with pytest.raises(Unavailable):
        await node_events.write(server.warn)
    server.away = False
    await node_events.write(server.warn)
    assert [message for _, message in server.written] == [str(number) for number in range(5, PENDING_MAX + 5)]
    await node_events.write(server.warn)
    assert len(server.written) == PENDING_MAX
