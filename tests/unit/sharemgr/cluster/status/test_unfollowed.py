"""What the cluster's status is told from must not stop without a word."""

import asyncio
from pathlib import Path

import pytest

from edgeshare.contract.errors import Unavailable
from edgeshare.kube.calls import Calls
from sharemgr.cluster.config import Managers, ObjectName, Status
from sharemgr.cluster.status import cluster_status
from tests.kit.apiserver.certificates import Authority
from tests.kit.processes.waiting import PATIENCE_S


class Unreachable(Calls):
    """An API server that nobody reaches."""

    def __init__(self) -> None:
        """It needs no settings."""

    async def call(self, *_: object, **__: object) -> None:
        raise Unavailable("it cannot be asked")


async def test_what_follows_the_api_server_no_more_ends_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stumbles(*_: object) -> None:
        raise RecursionError("nobody foresaw it")

    monkeypatch.setattr(cluster_status, "follow", stumbles)
    authority = Authority(tmp_path)
    certificate, key = authority.issue("status", "status", hosts=("IP:127.0.0.1",))
    managers = Managers(
        certificate=certificate,
        private_key=key,
        authority=authority.certificate,
        service=ObjectName(namespace="edgeshare", name="managers"),
    )
    config = Status(address="127.0.0.1:0", certificate=certificate, private_key=key, managers=managers)
    with pytest.raises(ExceptionGroup) as raised:
        async with asyncio.timeout(PATIENCE_S), cluster_status.serving(config, Unreachable()):
            await asyncio.Event().wait()
    assert raised.group_contains(RecursionError, match="nobody foresaw it")
