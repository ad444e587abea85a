"""Programs with shares, as the simulated GPU executed them, and how that is shown. Who gets more is judged here; how
much exactly, on the virtual clock (tests/virtual/test_exact_shares.py)."""

import json
import os
import subprocess
import sys
from datetime import datetime, timedelta

import pytest
import yaml

from edgeshare.cli.run import hook_library
from edgeshare.v1.allocations_pb2 import Allocation
from edgeshare.v1.status_pb2 import NodeStatus
from simgpu.native import BURN
from tests.kit.manager.acts import REPLACED
from tests.kit.manager.busy import all_granted, assert_ranked, burn, executed_until
from tests.kit.manager.testbed import EDGESHARE, MIB, Manager, Testbed, share
from tests.kit.processes.waiting import PATIENCE_S

LEAST_MS = 500
"""Who executes the least has executed so much when the order is judged."""

UNSHARED_KERNEL_US = 10_000
"""So long that what the driver would take of them takes ten seconds to drain."""

CONTEXT_MIB = 256
"""What a bare context takes on the simulated machine."""


@pytest.fixture
def three(testbed: Testbed, manager: Manager) -> Testbed:
    """Three programs that would each take all of the GPU, at 60, 30 and 10 percent: so far apart that nobody executes
    less than one with a smaller share because it held the GPU while other work had the machine."""
    for percent in (60, 30, 10):
        burn(testbed, str(percent), "--kernel-us", "1000", percent=percent)
    testbed.until(all_granted(3))
    return testbed


@pytest.mark.measures
def test_who_requests_more_gets_more(three: Testbed) -> None:
    assert_ranked(executed_until(three.machine, ("10", "30", "60"), LEAST_MS), ["60", "30", "10"])


@pytest.mark.measures
def test_a_limited_program_leaves_the_gpu_idle_when_nobody_else_wants_it(testbed: Testbed, manager: Manager) -> None:
    burn(testbed, "limited", "--kernel-us", "1000", percent=20, limit=40)
    testbed.until(all_granted(1))
    begin_ns = testbed.machine.look()
    executed = executed_until(testbed.machine, ["limited"], 4 * LEAST_MS)
    # Other work on the machine makes it less, never more.
    assert executed["limited"] < (testbed.machine.look() - begin_ns) / 2


@pytest.mark.measures
def test_what_a_killed_program_had_goes_to_the_others(three: Testbed) -> None:
    (largest,) = (each for each in three.status().allocations if each.allocation.request_percent == 60)
    os.kill(largest.clients[0].pid, 9)
    three.until(lambda status: len(status.allocations) == 2)
    executed_until(three.machine, ("10", "30"), 10)
    before_ns = three.machine.executed_ns(0)["60"]
    assert_ranked(executed_until(three.machine, ("10", "30"), LEAST_MS), ["30", "10"])
    assert three.machine.executed_ns(0)["60"] == before_ns


@pytest.mark.measures
def test_shares_are_back_with_the_manager_however_long_it_was_away(testbed: Testbed) -> None:
    config = "grace_s: 0.5\n"
    away = testbed.manager(config)
    names = ("30", "70")
    for name in names:
        burn(testbed, name, "--kernel-us", str(UNSHARED_KERNEL_US), percent=int(name))
    testbed.until(all_granted(2))
    away.kill()
    # One slice each is what they had; the rest they run unshared.
    executed_until(testbed.machine, names, LEAST_MS)
    testbed.manager(config)
    testbed.until(all_granted(2))
    # What was queued unshared is done after this.
    executed_until(testbed.machine, names, LEAST_MS)
    assert_ranked(executed_until(testbed.machine, names, LEAST_MS), ["70", "30"])


@pytest.mark.measures
def test_status_tells_who_executed_more(three: Testbed) -> None:
    executed_until(three.machine, ("10", "30", "60"), LEAST_MS)
    told = {str(each.allocation.request_percent): each for each in three.status().allocations}
    assert_ranked({name: each.gpu_percent for name, each in told.items()}, ["60", "30", "10"])
    assert_ranked({name: each.held_percent for name, each in told.items()}, ["60", "30", "10"])
    assert all(each.longest_wait_ns > 0 for each in told.values())


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


@pytest.mark.parametrize("gpu", [0, 1])
def test_a_process_that_joined_and_tells_of_nothing_that_it_does_is_told_as_unmanaged(
    testbed: Testbed, manager: Manager, gpu: int
) -> None:
    """Wherever it does it: its allocation is one of GPU 0."""
    burn(testbed, "honest", percent=20)
    with testbed.calls() as calls:
        allocation = Allocation(id="other", device_ids=testbed.uuids[:1], request_percent=10)
        answers = calls.hold(allocation, wait_for_manager=False)
        next(answers)
        hooked = {
            "LD_PRELOAD": str(hook_library()),
            "EDGESHARE_HOOK_DIR": str(testbed.folder("other")),
            "CUDA_VISIBLE_DEVICES": str(gpu),
        }
        replaced = subprocess.Popen(
            [sys.executable, "-c", REPLACED, BURN], env={**testbed.environment, **hooked}, stdout=subprocess.DEVNULL
        )
        try:
            status = testbed.until(lambda status: bool(status.devices[gpu].unmanaged_processes))
            (found,) = status.devices[gpu].unmanaged_processes
            assert found.pid == replaced.pid
            assert [client.pid for client in share(status, "other").clients] == [replaced.pid]
            assert not status.devices[1 - gpu].unmanaged_processes
        finally:
            replaced.kill()
            replaced.wait(PATIENCE_S)
        answers.close()


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
    assert sorted(each["allocation"]["requestPercent"] for each in status["allocations"]) == [10, 30, 60]
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
    top = three.fork("top", "--runtime-dir", str(three.runtime_dir))
    assert top.stdout is not None
    lines = [top.stdout.readline() for _ in range(6)]
    for each in three.status().allocations:
        # Twice each: it goes on.
        of_it = [line for line in lines if each.allocation.id in line]
        assert len(of_it) == 2
        assert all("longest wait: " in line for line in of_it)


def test_top_tells_programs_what_status_does_and_when_in_one_line_each_time(three: Testbed) -> None:
    top = three.fork("top", "--json", "--runtime-dir", str(three.runtime_dir))
    assert top.stdout is not None
    looks = [json.loads(top.stdout.readline()) for _ in range(2)]
    status = json.loads(three.edgeshare("status", "--json", "--runtime-dir", str(three.runtime_dir)).stdout)
    for look in looks:
        assert list(look) == ["seen", "stale", *status]
        assert look["stale"] == ""
        assert [each["allocation"] for each in look["allocations"]] == [
            each["allocation"] for each in status["allocations"]
        ]
    first, second = (datetime.fromisoformat(look["seen"]) for look in looks)
    assert first < second
    assert first.utcoffset() == timedelta(0)


def test_top_tells_the_same_as_a_stream_of_yaml(three: Testbed) -> None:
    top = three.fork("top", "--yaml", "--runtime-dir", str(three.runtime_dir))
    assert top.stdout is not None
    lines = [top.stdout.readline()]
    # The second one's begin is the first one's end.
    while lines[-1] != "---\n" or len(lines) == 1:
        lines.append(top.stdout.readline())
    (look,) = (each for each in yaml.safe_load_all("".join(lines)) if each)
    asked = [each.allocation.request_percent for each in three.status().allocations]
    assert [each["allocation"]["requestPercent"] for each in look["allocations"]] == asked


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--json", "--yaml"), "name one of them"),
        (("--web", "--json"), "leave out"),
        (("--web", "--yaml"), "leave out"),
    ],
)
def test_options_of_top_that_do_not_go_together_are_wrong_usage(
    testbed: Testbed, options: tuple[str, ...], told: str
) -> None:
    result = testbed.edgeshare("top", *options)
    assert (result.returncode, told in result.stderr) == (2, True)


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
