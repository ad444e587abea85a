"""Which of the allocation's devices a program's device is, where its driver does not say."""

import uuid

import pytest

from tests.kit.hook.manager import MIB, ScriptedManager
from tests.kit.hook.stage import OUT_OF_MEMORY, SUCCESS, Stage

ZEROS = uuid.UUID(int=0)
OURS, ANOTHERS = uuid.UUID(int=1 << 100), uuid.UUID(int=2 << 100)
INVALID_DEVICE = 101
ONE_LINE = "some lines mean nothing to this hook and are ignored"
REFUSED = "is none of its allocation's and is refused"


def unnamed_by_its_driver(stage: Stage, gpus: int) -> None:
    """Puts a machine there whose driver gives each GPU a UUID of zeros."""
    stage.replace_machine(gpus=gpus, uuids=[f"GPU-{ZEROS}"] * gpus)


def test_the_only_device_of_a_driver_without_identities_is_the_only_one_of_the_allocation(stage: Stage) -> None:
    unnamed_by_its_driver(stage, gpus=1)
    with ScriptedManager(stage.directory, devices=[uuid.uuid4()]) as manager:
        client = stage.client().ready().start()
        assert client.do(f"alloc plain {1000 * MIB}") == SUCCESS
        assert manager.used_bytes == 1000 * MIB
        assert client.do(f"alloc plain {25 * MIB}") == OUT_OF_MEMORY
        client.tell("info")
        assert client.answer() == [SUCCESS, 24 * MIB, 1024 * MIB]
        assert not manager.client().ended


@pytest.mark.parametrize(("gpus", "devices"), [(2, 1), (1, 2), (2, 2)])
def test_a_device_without_an_identity_that_may_be_any_is_nobodys(gpus: int, devices: int, stage: Stage) -> None:
    unnamed_by_its_driver(stage, gpus)
    with ScriptedManager(stage.directory, devices=[uuid.uuid4() for _ in range(devices)]) as manager:
        client = stage.client().ready().start()
        for _ in range(2):
            assert client.do(f"alloc plain {1000 * MIB}") == SUCCESS
        assert client.do("free 0") == SUCCESS
        stage.holds_until_granted(manager, client, "launch 100")
        assert manager.used_bytes == 0
        assert len(manager.connections) == 1
    assert stage.hook_log().count("no identity") == 1


@pytest.mark.parametrize(
    ("line", "visible", "result"),
    [
        (f"device-uuids={OURS.hex}", "0", SUCCESS),
        (f"device-uuids={OURS.hex}", "1", INVALID_DEVICE),
        (f"device-uuids={ZEROS.hex}", "1", SUCCESS),
        (f"device-uuids={OURS}", "1", SUCCESS),
        ("", "1", SUCCESS),
    ],
)
def test_a_device_that_is_not_the_allocations_is_refused_before_there_is_a_manager(
    line: str, visible: str, result: int, stage: Stage
) -> None:
    """By what its folder says, if that can be read."""
    stage.replace_machine(gpus=2, uuids=[f"GPU-{OURS}", f"GPU-{ANOTHERS}"])
    stage.directory.mkdir()
    (stage.directory / "hook.conf").write_text(f"memory-cap-bytes={100 * MIB}\n{line}\n")
    client = stage.memory_client(CUDA_VISIBLE_DEVICES=visible).ready()
    assert client.do("start") == result
    if result == SUCCESS:
        assert client.do(f"plain {101 * MIB}") == OUT_OF_MEMORY
        assert client.do(f"plain {100 * MIB}") == SUCCESS
    assert stage.hook_log().count(REFUSED) == (result == INVALID_DEVICE)
    assert stage.hook_log().count(ONE_LINE) == ("-" in line.partition("=")[2])
