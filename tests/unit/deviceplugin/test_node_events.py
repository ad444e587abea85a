import logging

import pytest

from deviceplugin.node_events import PENDING_MAX, Notices, Reason
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
    notices, server = Notices(), Server()
    for messages in (["a"], ["a"], ["a", "b"], [], ["a"]):
        notices.tell(Reason.DEVICE_MISSING, messages)
    assert notices.news.is_set()
    await notices.write(server.warn)
    assert [message for _, message in server.written] == ["a", "b", "a"]
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING] == ["a", "b", "a"]
    assert not notices.news.is_set()


async def test_kinds_of_trouble_do_not_end_each_other() -> None:
    notices, server = Notices(), Server()
    notices.tell(Reason.CONFIG_REFUSED, ["a"])
    notices.tell(Reason.DRIVER_BROKEN, [])
    notices.tell(Reason.CONFIG_REFUSED, ["a"])
    await notices.write(server.warn)
    assert server.written == [("ConfigRefused", "a")]
    assert notices.are_there(Reason.CONFIG_REFUSED, Reason.CONFIG_UNKNOWN)
    assert not notices.are_there(Reason.DRIVER_BROKEN)


async def test_what_cannot_be_written_is_kept_and_bounded() -> None:
    notices, server = Notices(), Server()
    server.away = True
    for number in range(PENDING_MAX + 5):
        notices.tell(Reason.DRIVER_BROKEN, [str(number)])
    with pytest.raises(Unavailable):
        await notices.write(server.warn)
    server.away = False
    await notices.write(server.warn)
    assert [message for _, message in server.written] == [str(number) for number in range(5, PENDING_MAX + 5)]
    await notices.write(server.warn)
    assert len(server.written) == PENDING_MAX
