"""Amounts that no device has: refused as CUDA refuses what does not fit, without a word to the manager."""

from dataclasses import replace

import pytest

from cuda_hook import wire
from tests.kit.hook.manager import MIB, WELCOME, ScriptedManager
from tests.kit.hook.stage import OUT_OF_MEMORY, SUCCESS, Stage

HUGE = 1 << 63
MOST = 1 << 52
"""Of the wire (core/shared/record.h): 4 PiB."""

COMMANDS = [
    f"plain {MOST + 1}",
    f"plain {HUGE}",
    f"managed {HUGE}",
    f"pitched {1 << 40} {1 << 40}",
    f"pitched {HUGE - 1} 3",
    f"pitched {(1 << 64) - 1} 1",
    f"array {1 << 40} {1 << 40}",
    f"array3d {1 << 30} {1 << 30} {1 << 30} 0",
    f"mipmap {1 << 40} {1 << 40} 4",
    f"chunk {HUGE} 1 0",
    f"asynchronous {HUGE}",
    f"from_pool 0 {HUGE}",
]


@pytest.mark.parametrize("cap_bytes", [WELCOME.memory_cap_bytes, MOST], ids=["a cap", "hardly a cap"])
@pytest.mark.parametrize("command", COMMANDS)
def test_what_no_device_has_is_refused_and_nothing_else(command: str, cap_bytes: int, stage: Stage) -> None:
    with ScriptedManager(stage.directory, replace(WELCOME, memory_cap_bytes=cap_bytes)) as manager:
        client = stage.memory_client().ready()
        assert client.do("start") == SUCCESS
        assert client.do("pool 0") == SUCCESS
        assert client.do(f"plain {100 * MIB}") == SUCCESS
        assert client.do(command) == OUT_OF_MEMORY
        assert max((record.size_bytes for record in manager.said(wire.Reserve)), default=0) <= MOST
        assert manager.used_bytes == 100 * MIB
        assert client.do("free 1") == SUCCESS
        assert manager.used_bytes == 0
        # The session is still the first.
        assert len(manager.connections) == 1


def test_what_a_device_might_have_is_asked_for(stage: Stage) -> None:
    """The bound itself is within it: the driver says that it has not so much."""
    with ScriptedManager(stage.directory, replace(WELCOME, memory_cap_bytes=MOST)) as manager:
        client = stage.memory_client().ready()
        assert client.do("start") == SUCCESS
        assert client.do(f"plain {MOST}") == OUT_OF_MEMORY
        assert manager.said(wire.Reserve)[-1].size_bytes == MOST
        assert manager.used_bytes == 0
