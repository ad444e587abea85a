"""Programs with shares, as the simulated GPU executed them; and how that is shown."""

import json
import os
import subprocess
import time

import pytest
from busy import all_granted, burn, executed_percents, shares_percents
from testbed import EDGESHARE, MIB, PATIENCE_S, Manager, Testbed, assert_measures

from edgeshare.v1.status_pb2 import NodeStatus
from simgpu.native import BURN

SETTLE_S = 1.0
MEASURE_S = 4.0
"""At 5 ms slices the rule's bound is 2 q / W: below half a percentage point of this."""

UNSHARED_KERNEL_US = 10_000
"""So long that what the driver would take of them takes ten seconds to drain."""

UNSHARED_S = 3.0
"""A multiple of the grace time: the programs run on unshared."""

CONTEXT_MIB = 256
"""What a bare context takes on the simulated machine."""


@pytest.fixture
def three(testbed: Testbed, manager: Manager) -> Testbed:
    """Three programs that would each take all of the GPU, at 50, 30 and 20 percent."""
    for percent in (50, 30, 20):
        burn(testbed, str(percent), "--kernel-us", "1000", percent=percent)
    testbed.until(all_granted(3))
    return testbed


def test_each_gets_its_request(three: Testbed) -> None:
    time.sleep(SETTLE_S)
    due = pytest.approx({"50": 50, "30": 30, "20": 20}, abs=1.0)
    assert_measures(due, lambda: shares_percents(three.machine, MEASURE_S))


def test_a_limit_holds_when_nobody_else_wants_the_gpu(testbed: Testbed, manager: Manager) -> None:
    burn(testbed, "limited", "--kernel-us", "1000", percent=20, limit=40)
    testbed.until(all_granted(1))
    time.sleep(SETTLE_S)
    assert_measures(pytest.approx({"limited": 40}, abs=3.0), lambda: executed_percents(testbed.machine, MEASURE_S))


def test_what_a_killed_program_had_goes_to_the_others(three: Testbed) -> None:
    (largest,) = (each for each in three.status().allocations if each.allocation.request_percent == 50)
    os.kill(largest.clients[0].pid, 9)
    three.until(lambda status: len(status.allocations) == 2)
    due = pytest.approx({"30": 60, "20": 40}, abs=1.0)
    assert_measures(due, lambda: shares_percents(three.machine, MEASURE_S))


def test_shares_are_back_with_the_manager_however_long_it_was_away(testbed: Testbed) -> None:
    config = "grace_s: 0.5\n"
    away = testbed.manager(config)
    for percent in (70, 30):
        burn(testbed, str(percent), "--kernel-us", str(UNSHARED_KERNEL_US), percent=percent)
    testbed.until(all_granted(2))
    away.kill()
    time.sleep(UNSHARED_S)
    testbed.manager(config)
    testbed.until(all_granted(2))
    time.sleep(SETTLE_S)
    due = pytest.approx({"70": 70, "30": 30}, abs=1.5)
    assert_measures(due, lambda: shares_percents(testbed.machine, MEASURE_S))


def test_status_tells_what_was_executed(three: Testbed) -> None:
    time.sleep(SETTLE_S)
    errors_percent: dict[str, float] = {}

    def worst_error_percent() -> float:
        executed = executed_percents(three.machine, MEASURE_S)
        for each in three.status().allocations:
            # Its own window begins a little earlier than ours: a look at the order of size, not at the rule.
            request_percent = each.allocation.request_percent
            gpu_error_percent = each.gpu_percent - executed[str(request_percent)]
            errors_percent[each.allocation.id] = max(abs(gpu_error_percent), abs(each.held_percent - request_percent))
            assert each.longest_wait_ns > 0
        return max(errors_percent.values())

    assert_measures(pytest.approx(0, abs=5), worst_error_percent)
    assert len(errors_percent) == 3


def test_a_context_counts_against_the_cap(three: Testbed) -> None:
    def counted(status: NodeStatus) -> bool:
        # A context counts at once; what the driver says of the device is of the last look at it.
        return status.devices[0].memory_used_mib == 3 * CONTEXT_MIB and all(
            each.memory_used_bytes >= CONTEXT_MIB * MIB for each in status.allocations
        )

    status = three.until(counted)
    for each in status.allocations:
        assert each.clients[0].memory_used_bytes == each.memory_used_bytes


def test_a_process_that_no_hook_joined_is_told_as_unmanaged(testbed: Testbed, manager: Manager) -> None:
    burn(testbed, "joined", percent=20)
    stranger = subprocess.Popen([BURN, "--seconds", "600"], env=testbed.environment, stdout=subprocess.DEVNULL)
    try:
        status = testbed.until(lambda status: bool(status.devices[0].unmanaged_processes))
        (found,) = status.devices[0].unmanaged_processes
        assert (found.pid, found.memory_mib) == (stranger.pid, CONTEXT_MIB)
        assert not status.devices[1].unmanaged_processes
    finally:
        stranger.kill()
        stranger.wait(PATIENCE_S)
    testbed.until(lambda status: not status.devices[0].unmanaged_processes)


def test_a_lost_gpu_is_told_with_its_cause(testbed: Testbed, manager: Manager) -> None:
    testbed.fault("lost", "--gpu", "1")
    status = testbed.until(lambda status: not status.devices[1].healthy)
    assert "GPU is lost" in status.devices[1].cause
    assert status.devices[0].healthy
    assert f"GPU 1 ({testbed.uuids[1]}) is not healthy: the driver cannot read it" in manager.log()


def test_status_prints_every_field_as_json(three: Testbed) -> None:
    result = three.edgeshare("status", "--runtime-dir", str(three.runtime_dir), "--json")
    assert result.returncode == 0
    status = json.loads(result.stdout)
    assert [device["index"] for device in status["devices"]] == [0, 1]
    assert status["devices"][1]["unmanagedProcesses"] == []
    assert sorted(each["allocation"]["requestPercent"] for each in status["allocations"]) == [20, 30, 50]
    assert all(each["waitingNs"].isdigit() for each in status["allocations"])


def test_status_is_a_plain_table_where_no_terminal_is(three: Testbed) -> None:
    result = three.edgeshare("status", "--runtime-dir", str(three.runtime_dir))
    assert result.returncode == 0
    assert "\x1b" not in result.stdout
    for device_id in three.uuids:
        assert device_id in result.stdout
    for each in three.status().allocations:
        (line,) = (line for line in result.stdout.splitlines() if each.allocation.id in line)
        assert f"{each.allocation.request_percent} %" in line
        assert f"of {each.allocation.memory_mib} MiB" in line


def test_status_without_a_manager_is_one_line(testbed: Testbed) -> None:
    for command in ("status", "top"):
        result = testbed.edgeshare(command, "--runtime-dir", str(testbed.runtime_dir))
        assert result.returncode == 1
        assert "no share manager answers at" in result.stderr
        assert len(result.stderr.splitlines()) == 1


def test_top_prints_a_line_for_each_share_where_no_terminal_is(three: Testbed) -> None:
    top = three.popen("top", "--runtime-dir", str(three.runtime_dir))
    assert top.stdout is not None
    lines = [top.stdout.readline() for _ in range(6)]
    for each in three.status().allocations:
        # Twice each: it goes on.
        of_it = [line for line in lines if each.allocation.id in line]
        assert len(of_it) == 2
        assert all("longest wait: " in line for line in of_it)


def test_top_redraws_in_place_on_a_terminal(three: Testbed) -> None:
    primary, secondary = os.openpty()
    top = subprocess.Popen(
        [EDGESHARE, "top", "--runtime-dir", str(three.runtime_dir)],
        env={**three.environment, "TERM": "xterm", "COLUMNS": "200"},
        stdin=secondary,
        stdout=secondary,
        stderr=secondary,
    )
    os.close(secondary)
    seen = b""
    while seen.count(b"longest wait") < 2:
        seen += os.read(primary, 65536)
    top.send_signal(2)
    assert top.wait(PATIENCE_S) == 0
    os.close(primary)
    assert b"\x1b[?1049h" in seen
