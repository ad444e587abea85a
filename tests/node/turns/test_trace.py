"""``edgeshare trace``, as somebody runs it on a node."""

import json
import os
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from edgeshare.cli import trace
from edgeshare.cli.trace.recording import Recording
from edgeshare.contract.errors import InvalidRequest, Unavailable
from edgeshare.v1.status_pb2 import Turns
from tests.kit.manager.busy import all_granted, burn
from tests.kit.manager.testbed import Manager, Testbed


def arguments(testbed: Testbed, output: Path | str, seconds: float = 0.2) -> tuple[str, ...]:
    return ("trace", "--runtime-dir", str(testbed.runtime_dir), "--seconds", str(seconds), "--output", str(output))


def held_to_the_format(content: dict[str, Any]) -> dict[tuple[int, int], list[dict[str, Any]]]:
    """The complete events of each thread, which is named and where no two overlap."""
    threads = defaultdict(list)
    named = set()
    for event in content["traceEvents"]:
        assert event["ph"] in "MXsfCi"
        if event["ph"] == "X":
            assert min(event["ts"], event["dur"], event["pid"], event["tid"]) >= 0
            threads[event["pid"], event["tid"]].append(event)
        elif event["name"] == "thread_name":
            named.add((event["pid"], event["tid"]))
    assert threads.keys() <= named
    for events in threads.values():
        assert all(before["ts"] + before["dur"] <= after["ts"] for before, after in pairwise(events))
    return threads


def test_two_programs_are_two_threads_of_their_gpu(testbed: Testbed, manager: Manager) -> None:
    burn(testbed, "a", percent=60)
    burn(testbed, "b", percent=40)
    status = testbed.until(all_granted(2))
    output = testbed.root / "trace.json"
    output.write_text("what was there before")
    result = testbed.edgeshare(*arguments(testbed, output))
    assert (result.returncode, result.stdout) == (0, "")
    assert result.stderr == f"wrote 0.2 s to {output}, to be opened at https://ui.perfetto.dev\n"
    assert [path.name for path in testbed.root.glob("*trace*")] == ["trace.json"]
    content = json.loads(output.read_text())
    threads = held_to_the_format(content)
    # Each keeps it busy: whatever the machine does meanwhile, each waits, holds or drains.
    assert {event["args"]["allocation"] for events in threads.values() for event in events} == {
        each.allocation.id for each in status.allocations
    }
    assert len({pid for pid, _ in threads}) == 1
    names = [event["args"]["name"] for event in content["traceEvents"] if event["name"] == "process_name"]
    assert names == ["recording", *(f"gpu {each.index} {each.model} {each.id}" for each in status.devices)]
    assert content["otherData"]["seconds"] == 0.2


def test_it_writes_to_standard_output_too(testbed: Testbed, manager: Manager) -> None:
    result = testbed.edgeshare(*arguments(testbed, "-"))
    assert result.returncode == 0
    assert held_to_the_format(json.loads(result.stdout)) == {}


def test_no_manager_is_said_as_status_says_it_and_nothing_is_written(testbed: Testbed) -> None:
    output = testbed.root / "trace.json"
    result = testbed.edgeshare(*arguments(testbed, output))
    status = testbed.edgeshare("status", "--runtime-dir", str(testbed.runtime_dir))
    assert (result.returncode, result.stderr) == (1, status.stderr)
    assert not list(testbed.root.glob("*trace*"))


@pytest.mark.parametrize("name", ["missing/trace.json", "folder", "pipe"])
def test_a_file_that_cannot_be_written_is_said_before_recording(
    testbed: Testbed, manager: Manager, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (testbed.root / "folder").mkdir()
    os.mkfifo(testbed.root / "pipe")
    output = testbed.root / name
    # There is nothing to record with.
    monkeypatch.setattr(trace, "record", None)
    result = CliRunner().invoke(trace.command, arguments(testbed, output)[1:])
    assert isinstance(result.exception, InvalidRequest)
    assert str(result.exception).startswith(f"{output} cannot be written: ")


@pytest.mark.parametrize("seconds", [0, 61])
def test_it_takes_some_seconds(testbed: Testbed, seconds: float) -> None:
    result = testbed.edgeshare(*arguments(testbed, "-", seconds))
    assert result.returncode == 2
    assert "--seconds" in result.stderr


def test_what_was_recorded_when_the_manager_ends_is_written(
    testbed: Testbed, manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Ending(Recording):
        """The manager ends after its second message."""

        def take(self, turns: Turns) -> None:
            if self.begin_ns >= 0 and manager.process.poll() is None:
                manager.end()
            super().take(turns)

    monkeypatch.setattr(trace, "Recording", Ending)
    output = testbed.root / "trace.json"
    result = CliRunner().invoke(trace.command, arguments(testbed, output, 60)[1:])
    assert isinstance(result.exception, Unavailable)
    told = json.loads(output.read_text())["otherData"]
    assert 0 < told["seconds"] < 60
    assert told["broke_off"]
    assert str(result.exception) == (
        f"recorded {told['seconds']:.1f} s of 60, which are written to {output}: {told['broke_off']}"
    )
