"""Health on disk, and what a plugin that starts makes of it."""

import logging
import os
from dataclasses import replace
from pathlib import Path

import pytest

from deviceplugin.health.health_config import HealthConfig
from deviceplugin.health.health_records import HealthRecords, Known
from deviceplugin.health.state import Condition, State
from deviceplugin.health.watch import HealthWatch
from edgeshare.contract.devices import Accelerator, Device
from edgeshare.contract.health import Reason, Source
from edgeshare.inventory.nvml.device_health import Fault

CORAL = Device("usb-1-1.2:1.0/a", 0, "Coral", 0, accelerator=Accelerator.EDGETPU)
OTHER = Device("usb-2", 1, "Coral", 0, accelerator=Accelerator.EDGETPU)
ILL = State(
    (Condition(Reason.XID, "XID 62", Source.DRIVER_EVENT, 7),), "boot-1", 5_000, 0, False, frozenset({"/dev/x"})
)


def watch(folder: Path, boot_id: str = "boot-1") -> HealthWatch:
    return HealthWatch(HealthConfig(), folder, boot_id)


def written(folder: Path) -> list[int]:
    """When each record was."""
    return sorted(path.stat().st_mtime_ns for path in folder.iterdir())


def test_what_is_written_is_read(tmp_path: Path) -> None:
    known = Known(CORAL, ILL)
    HealthRecords(tmp_path / "health").write(known)
    assert HealthRecords(tmp_path / "health").read() == {CORAL.id: known}
    assert [path.parent for path in tmp_path.rglob("*.json")] == [tmp_path / "health"]


def test_only_what_has_changed_is_written(tmp_path: Path) -> None:
    records = HealthRecords(tmp_path)
    records.write(Known(CORAL, ILL))
    before = written(tmp_path)
    records.write(Known(CORAL, replace(ILL, energy_mj=9_999)))
    waiting = replace(ILL.conditions[0], good_looks=1, good_since_ns=3)
    records.write(Known(CORAL, replace(ILL, conditions=(waiting,))))
    assert written(tmp_path) == before
    records.write(Known(CORAL, replace(ILL, energy_mj=10_000)))
    second = written(tmp_path)
    records.write(Known(CORAL, replace(ILL, energy_mj=10)))
    third = written(tmp_path)
    records.write(Known(CORAL, replace(ILL, conditions=(), energy_mj=10)))
    assert before != second != third != written(tmp_path)


def test_a_broken_record_is_left_out_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    records = HealthRecords(tmp_path)
    records.write(Known(OTHER, ILL))
    (tmp_path / "half.json").write_text('{"device": {"id": "half"')
    assert set(HealthRecords(tmp_path).read()) == {OTHER.id}
    assert "half.json is left out" in caplog.text


def test_a_disk_that_takes_nothing_is_said_and_survived(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "health").write_text("a file where a folder should be")
    caplog.set_level(logging.INFO)
    records = HealthRecords(tmp_path / "health")
    # It is tried at each look.
    for _ in range(3):
        records.write(Known(CORAL, ILL))
    (tmp_path / "health").unlink()
    records.write(Known(CORAL, ILL))
    complaint = f"the health of {CORAL.id} is not kept: "
    assert [message.partition(complaint)[2][:9] for message in caplog.messages] == ["[Errno 17", "over, aft"]


def test_a_record_that_cannot_be_removed_is_said_and_survived(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    records = HealthRecords(tmp_path)
    records.write(Known(CORAL, ILL))
    (record,) = tmp_path.iterdir()
    record.unlink()
    record.mkdir()
    records.forget(CORAL.id)
    assert f"the health of {CORAL.id} stays: " in caplog.text


def test_a_device_that_is_gone_stays_listed_over_a_restart_and_not_over_a_reboot(tmp_path: Path) -> None:
    assert watch(tmp_path).judge([CORAL, OTHER]) == [CORAL, OTHER]
    for _ in range(2):
        sound, gone = watch(tmp_path).judge([CORAL])
        assert (sound, gone.id, gone.healthy, gone.cause) == (CORAL, OTHER.id, False, "it is no longer listed")
    # The driver may come later than we do.
    assert [device.healthy for device in watch(tmp_path, "boot-2").judge([], "no driver yet")] == [False, False]
    assert [device.id for device in watch(tmp_path, "boot-2").judge([CORAL])] == [CORAL.id]
    assert set(HealthRecords(tmp_path).read()) == {CORAL.id}


def test_a_device_that_its_inventory_calls_unfit_needs_two_good_looks(tmp_path: Path) -> None:
    health = watch(tmp_path)
    health.judge([CORAL])
    (ill,) = health.judge([replace(CORAL, healthy=False, cause="it does not answer")])
    assert (ill.healthy, ill.cause) == (False, "it does not answer")
    assert [health.judge([CORAL])[0].healthy for _ in range(2)] == [False, True]
    assert [each.healthy for _, each in health.changes] == [False, True]


def test_what_changes_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    health = watch(tmp_path)
    for _ in range(3):
        health.judge([replace(CORAL, healthy=False, cause="it does not answer")])
    (line,) = [record.message for record in caplog.records if "not healthy" in record.message]
    assert line.startswith(f"EdgeTPU {CORAL.id} is not healthy: it does not answer (inventory, since ")


def test_a_device_that_nobody_looks_for_any_more_is_no_news_and_its_health_is_kept(tmp_path: Path) -> None:
    health = watch(tmp_path)
    health.judge([CORAL, OTHER])
    assert health.judge([CORAL], wanted=lambda device: device.id == CORAL.id) == [CORAL]
    assert (list(health.changes), [device.id for device, _ in health.now]) == ([], [CORAL.id])
    assert set(HealthRecords(tmp_path).read()) == {CORAL.id, OTHER.id}


def test_a_device_without_a_drivers_library_may_be_too_hot_as_well(tmp_path: Path) -> None:
    temperatures = {CORAL.id: 91.6, OTHER.id: None}
    health = HealthWatch(HealthConfig(temperature_limit_c=92, temperature_calm_s=0), tmp_path, "boot-1")
    hot, unknown = health.judge([CORAL, OTHER], temperature_c=temperatures.get)
    assert (hot.healthy, hot.cause, unknown.healthy) == (False, "92 °C, the limit is 92", True)
    assert [each.source for _, each in health.now] == ["inventory", ""]
    temperatures[CORAL.id] = 60.0
    looks = [health.judge([CORAL, OTHER], temperature_c=temperatures.get)[0].healthy for _ in range(2)]
    assert looks == [False, True]


def test_a_fault_that_names_no_gpu_may_be_of_any(tmp_path: Path) -> None:
    gpus = [Device(f"GPU-{index}", index, "m", 1, source="nvml") for index in range(2)]
    health = watch(tmp_path)
    health.judge([*gpus, CORAL])
    health.hear(Fault("", 79))
    judged = {device.id: device.cause for device in health.judge([*gpus, CORAL])}
    assert judged == {"GPU-0": "XID 79", "GPU-1": "XID 79", CORAL.id: ""}


def test_a_device_of_before_a_boot_is_told_with_a_time_that_stays(tmp_path: Path) -> None:
    watch(tmp_path).judge([CORAL])
    health = watch(tmp_path, "boot-2")
    health.judge([], "no driver yet")
    ((_, first),) = health.now
    health.judge([], "no driver yet")
    ((_, second),) = health.now
    assert first == second
    assert first.reason == Reason.NO_ANSWER
    assert first.cause.startswith("no driver yet (driver, since 20")


def test_what_is_no_file_is_said_and_not_waited_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Who opens a pipe waits until somebody writes into it."""
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "folder.json").mkdir()
    assert HealthRecords(tmp_path).read() == {}
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2
    assert all(name in line for name, line in zip(("folder.json", "pipe.json"), said, strict=True))
