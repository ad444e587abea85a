"""What lies in the place of the plugin's own files and is none of them: said in a line, and nothing else is lost."""

import json
import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from deviceplugin.allocations.records import Records
from deviceplugin.health.health_records import HealthRecords, Known
from deviceplugin.health.state import State
from deviceplugin.units.ledger import Allocation
from edgeshare.contract.devices import Device

GOOD = Allocation("good", frozenset({"GPU-1::00"}), "")
DAMAGED = Allocation("damaged", frozenset({"GPU-1::01"}), "")
SEEN = Known(Device("GPU-1", 0, "Tesla T4", 15360), State())


def grown(path: Path) -> None:
    os.truncate(path, 1 << 40)


def nested(path: Path) -> None:
    path.write_bytes(b"[" * 200_000)


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def no_text(path: Path) -> None:
    path.write_bytes(b'{"id": "\xff\xfe"}')


DAMAGES = (grown, nested, pipe, folder, no_text)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_an_allocation_whose_record_is_damaged_is_left_out_and_said(
    tmp_path: Path, damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    records = Records(tmp_path)
    records.write(GOOD, "")
    records.write(DAMAGED, "")
    damage(tmp_path / "damaged" / "record.json")
    with caplog.at_level(logging.WARNING):
        assert list(records.read()) == [GOOD]
    (line,) = caplog.messages
    assert "damaged/record.json is left out" in line
    assert len(line) < 500


@pytest.mark.parametrize("damage", [grown, nested, pipe, no_text], ids=lambda damage: damage.__name__)
def test_a_record_is_written_in_the_place_of_a_damaged_one(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    records = Records(tmp_path)
    records.write(DAMAGED, "")
    damage(tmp_path / "damaged" / "record.json")
    records.write(DAMAGED, "")
    assert list(records.read()) == [DAMAGED]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_device_whose_health_is_damaged_is_left_out_and_said(
    tmp_path: Path, damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    HealthRecords(tmp_path).write(SEEN)
    (tmp_path / "damaged.json").touch()
    damage(tmp_path / "damaged.json")
    with caplog.at_level(logging.WARNING):
        assert HealthRecords(tmp_path).read() == {"GPU-1": SEEN}
    (line,) = caplog.messages
    assert "damaged.json is left out" in line
    assert len(line) < 500


@pytest.mark.parametrize("units", [[], ["GPU-1"], ["GPU-1::00", "::01"]])
def test_a_record_of_what_are_no_units_is_left_out_and_said(
    tmp_path: Path, units: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever counts a device's units would stumble over it, and the plugin end at each start."""
    records = Records(tmp_path)
    records.write(GOOD, "")
    records.write(DAMAGED, "")
    record = tmp_path / "damaged" / "record.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | {"unit_ids": units}))
    assert list(records.read()) == [GOOD]
    (line,) = caplog.messages
    assert line.startswith(f"{record} is left out, its container has to be made anew: ")
