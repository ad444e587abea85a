"""A client that gets memory in every way, with the hook and a context; and what it uses, as counted."""

import pytest

from tests.kit.hook.manager import MIB, ScriptedManager, Used
from tests.kit.hook.stage import SUCCESS, Client, Stage


@pytest.fixture
def client(stage: Stage, manager: ScriptedManager) -> Client:
    manager.serve(contended=False)
    client = stage.memory_client().ready()
    assert client.do("start") == SUCCESS
    return client


@pytest.fixture
def used_mib(manager: ScriptedManager) -> Used:
    return lambda: manager.used_bytes / MIB
