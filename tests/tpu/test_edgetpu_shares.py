"""Programs with shares of an EdgeTPU, as the device itself logged what ran. Who gets more is judged here; how much
exactly, over simulated time (tests/sim/test_edgetpu.py)."""

import os
import re
import signal
import subprocess
import time

import pytest

from edgeshare.v1.status_pb2 import ALLOCATION_STATE_HOLDING, ALLOCATION_STATE_WAITING, NodeStatus
from tests.kit.manager.busy import assert_ranked
from tests.kit.manager.testbed import EDGESHARE
from tests.kit.processes.waiting import PATIENCE_S
from tests.kit.tpu.tpu_lab import APEX, PCIE, USB, Lab, line, overlaps, tell

LEAST_MS = 500
"""For whom the least runs, so much has run when the order is judged."""

KEEPS_OPEN = """
import os, sys
fd = os.open("/dev/apex_0", os.O_RDWR)
print("open", flush=True)
sys.stdin.readline()
os.close(fd)
print("closed", flush=True)
sys.stdin.readline()
"""


def keeper_of(lab: Lab, *others: str) -> "subprocess.Popen[str]":
    """A program that has the device open, of an allocation beside these."""
    lab.manager()
    for name in ("keeper", *others):
        lab.allocate(name, 30)
    keeper = lab.client("keeper", KEEPS_OPEN)
    assert line(keeper) == "open"
    return keeper


def both_granted(status: NodeStatus) -> bool:
    return sum(each.grants > 0 for each in status.allocations) == 2


def assert_70_to_30(lab: Lab) -> None:
    """Of two programs of these names the first gets more of what runs, and they run one at a time."""
    lab.until(both_granted)
    assert_ranked(lab.inferred_until(("70", "30"), LEAST_MS), ["70", "30"])
    assert overlaps(lab.tpus.log()) == []


@pytest.mark.measures
@pytest.mark.parametrize(
    ("tpu", "first_us", "second_us"), [(PCIE, 10_000, 10_000), (PCIE, 4_000, 25_000), (USB, 10_000, 10_000)]
)
def test_two_that_open_it_for_each_inference_get_their_shares(
    lab: Lab, tpu: str, first_us: int, second_us: int
) -> None:
    lab.manager()
    device = APEX if tpu == PCIE else str(lab.usb_path)
    lab.burn("70", "--device", device, "--infer-us", str(first_us), percent=70, tpu=tpu)
    lab.burn("30", "--device", device, "--infer-us", str(second_us), percent=30, tpu=tpu)
    assert_70_to_30(lab)


@pytest.mark.measures
def test_two_that_keep_it_open_get_their_shares_by_slices(lab: Lab) -> None:
    lab.manager()
    for percent in (70, 30):
        lab.burn(str(percent), "--slices", "--per-open", "0", percent=percent)
    assert_70_to_30(lab)


@pytest.mark.measures
def test_slices_of_a_claimed_device_on_the_usb_give_the_claim_back(lab: Lab) -> None:
    lab.manager()
    for percent in (70, 30):
        arguments = ("--device", str(lab.usb_path), "--slices", "--per-open", "0")
        lab.burn(str(percent), *arguments, percent=percent, tpu=USB)
    assert_70_to_30(lab)


@pytest.mark.measures
def test_a_limited_program_leaves_the_device_idle_when_nobody_else_wants_it(lab: Lab) -> None:
    lab.manager()
    lab.burn("limited", percent=20, limit=40)
    lab.until(lambda status: any(each.grants for each in status.allocations))
    begin_ns = time.monotonic_ns()
    ran = lab.inferred_until(["limited"], 2 * LEAST_MS)
    # Other work on the machine makes it less, never more.
    assert ran["limited"] < (time.monotonic_ns() - begin_ns) / 2


@pytest.mark.measures
def test_status_tells_for_whom_more_ran(lab: Lab) -> None:
    lab.manager()
    for percent in (70, 30):
        lab.burn(str(percent), percent=percent)
    lab.until(both_granted)
    lab.inferred_until(("70", "30"), LEAST_MS)
    told = lab.status().allocations
    assert_ranked({str(each.allocation.request_percent): each.gpu_percent for each in told}, ["70", "30"])
    for each in told:
        assert each.held_percent == pytest.approx(each.gpu_percent)
        assert len(each.clients) == 1


@pytest.mark.measures
def test_one_of_the_latency_class_waits_less_than_the_others(lab: Lab) -> None:
    lab.manager()
    for name in ("one", "other"):
        lab.burn(name, "--infer-us", "20000", percent=40)
    lab.burn("latency", "--infer-us", "1000", "--think-us", "100000", percent=20, share_class="latency")
    lab.inferred_until(("one", "other"), LEAST_MS)

    def waits_least(status: NodeStatus) -> bool:
        waits = {each.allocation.request_percent: each.longest_wait_ns for each in status.allocations}
        return 0 < waits[20] < waits[40]

    # A machine's bad moment is forgotten with the window that it is in.
    lab.until(waits_least)


def test_who_keeps_it_open_holds_it_and_status_says_so_and_who_waits(lab: Lab) -> None:
    keeper = keeper_of(lab, "other")
    other = lab.client("other", KEEPS_OPEN)
    # Far longer than a slice and all grace: it is not called back, and nobody is granted beside it.
    status = lab.until(
        lambda status: (
            any(each.holding_ns > 2_000_000_000 for each in status.allocations)
            and any(each.waiting_ns > 1_000_000_000 for each in status.allocations)
        )
    )
    by_id = {each.allocation.id: each for each in status.allocations}
    assert by_id["keeper"].state == ALLOCATION_STATE_HOLDING
    assert list(by_id["keeper"].waiting_allocations) == ["other"]
    assert by_id["other"].state == ALLOCATION_STATE_WAITING
    assert not by_id["keeper"].overlapping
    shown = lab.edgeshare("status", "--runtime-dir", str(lab.runtime_dir)).stdout
    (held_s,) = re.findall(r"holding (\d+\.\d) s", shown)
    assert float(held_s) >= 2
    assert "1 wait" in shown
    tell(keeper)
    assert line(keeper) == "closed"
    assert line(other) == "open"
    assert lab.share("keeper").holding_ns == 0


def test_who_dies_with_it_open_gives_it_back(lab: Lab) -> None:
    keeper = keeper_of(lab, "other")
    other = lab.client("other", KEEPS_OPEN)
    lab.until(lambda status: any(each.state == ALLOCATION_STATE_WAITING for each in status.allocations))
    keeper.kill()
    assert line(other) == "open"


def test_one_that_is_stopped_keeps_it(lab: Lab) -> None:
    """Stopped or not, nobody else could open the device."""
    keeper = keeper_of(lab, "other")
    os.kill(keeper.pid, signal.SIGSTOP)
    other = lab.client("other", KEEPS_OPEN)
    status = lab.until(lambda status: any(each.waiting_ns > 1_000_000_000 for each in status.allocations))
    assert {each.allocation.id: each.overruns for each in status.allocations} == {"keeper": 0, "other": 0}
    os.kill(keeper.pid, signal.SIGCONT)
    tell(keeper)
    assert line(other) == "open"


def test_a_slice_that_was_over_before_its_process_woke_is_used_all_the_same(lab: Lab) -> None:
    """On a busy machine a process may wake later than its slice lasts, each time."""
    keeper = keeper_of(lab, "late", "rival")
    late = lab.client("late", KEEPS_OPEN)
    lab.until(lambda status: any(each.state == ALLOCATION_STATE_WAITING for each in status.allocations))
    os.kill(late.pid, signal.SIGSTOP)
    tell(keeper)
    lab.until(lambda status: any(each.allocation.id == "late" and each.grants for each in status.allocations))
    rival = lab.client("rival", KEEPS_OPEN)
    lab.until(lambda status: any(each.allocation.id == "late" and each.revokes for each in status.allocations))
    os.kill(late.pid, signal.SIGCONT)
    assert line(late) == "open"
    tell(late)
    assert line(rival) == "open"


def test_processes_of_one_allocation_wait_for_each_other(lab: Lab) -> None:
    lab.manager()
    lab.allocate("both", 50)
    first, second = (lab.client("both", KEEPS_OPEN) for _ in range(2))
    lab.until(lambda status: sum(len(each.clients) for each in status.allocations) == 2)
    lab.until(lab.holder())
    assert len(lab.share("both").clients) == 2
    for process in (first, second):
        tell(process)
    assert [line(first), line(first), line(second), line(second)] == ["open", "closed"] * 2


def test_a_device_that_got_its_firmware_is_the_same_device(lab: Lab) -> None:
    lab.manager()
    lab.burn("before", "--device", str(lab.usb_path), percent=50, tpu=USB).poll()
    lab.until(lambda status: any(each.grants for each in status.allocations))
    fresh = lab.tpus.enumerate_usb(USB, 5, started=True)
    assert fresh != lab.usb_path
    held = lab.burn("after", "--device", str(fresh), "--per-open", "0", percent=50, tpu=USB)
    status = lab.until(lambda status: any(each.holding_ns > 500_000_000 for each in status.allocations))
    assert held.poll() is None
    assert status.allocations


@pytest.mark.parametrize("busy", ["EBUSY", "EPERM"])
def test_a_device_that_a_stranger_has_is_asked_for_again_and_then_said_to_be_busy(lab: Lab, busy: str) -> None:
    lab.manager("grace_s: 3\n")
    lab.allocate("mine", 30)
    stranger = lab.client("mine", KEEPS_OPEN, EDGESHARE_TPU_HOOK_DIR="/nowhere")
    assert line(stranger) == "open"
    begin_s = time.monotonic()
    turned_away = lab.client("mine", KEEPS_OPEN, SIMTPU_BUSY=busy)
    assert turned_away.wait(PATIENCE_S) == 1
    assert time.monotonic() - begin_s > 3
    assert turned_away.stderr is not None
    assert ("Errno 16" if busy == "EBUSY" else "Errno 1]") in turned_away.stderr.read()
    patient = lab.client("mine", KEEPS_OPEN, SIMTPU_BUSY=busy)
    lab.until(lambda status: any(each.holding_ns for each in status.allocations))
    tell(stranger)
    assert line(patient) == "open"


def test_without_a_manager_it_is_opened_after_the_grace_time_or_never(lab: Lab) -> None:
    away = lab.manager("grace_s: 0.5\n")
    lab.allocate("mine", 30)
    away.kill()
    begin_s = time.monotonic()
    assert line(lab.client("mine", KEEPS_OPEN)) == "open"
    assert time.monotonic() - begin_s > 0.5


@pytest.mark.measures
def test_shares_are_back_with_the_manager(lab: Lab) -> None:
    away = lab.manager("grace_s: 0.5\n")
    for percent in (70, 30):
        lab.burn(str(percent), percent=percent)
    lab.until(both_granted)
    away.kill()
    # More than the slice that each may still have had: they run unshared.
    lab.inferred_until(("70", "30"), LEAST_MS)
    lab.manager("grace_s: 0.5\n")
    lab.until(both_granted)
    assert_ranked(lab.inferred_until(("70", "30"), LEAST_MS), ["70", "30"])


@pytest.mark.measures
def test_who_is_back_at_the_manager_later_keeps_nobody_out(lab: Lab) -> None:
    away = lab.manager("grace_s: 0.5\n")
    lab.burn("soon", percent=30)
    late = lab.burn("late", percent=70)
    lab.until(both_granted)
    # What would ask for its allocation again; the program itself runs on, unshared.
    os.kill(late.pid, signal.SIGSTOP)
    try:
        away.kill()
        # More than the slice that each may still have had: they run unshared.
        lab.inferred_until(("soon", "late"), LEAST_MS)
        lab.manager("grace_s: 0.5\n")
        lab.until(lambda status: any(each.grants for each in status.allocations))
        # Though it asked for less than the other, beside whom it would have less.
        assert_ranked(lab.inferred_until(["soon", "late"], 100), ["soon", "late"])
    finally:
        os.kill(late.pid, signal.SIGCONT)


def test_a_gpu_and_an_edgetpu_are_two_shares_of_one_program(lab: Lab) -> None:
    lab.manager()
    inner = lab.run_arguments("--percent", "30", "--", "env")
    result = lab.edgeshare(*lab.run_arguments("--tpu", "--percent", "40", "--", EDGESHARE, *inner))
    assert result.returncode == 0, result.stderr
    variables = dict(each.partition("=")[::2] for each in result.stdout.splitlines())
    assert variables["EDGESHARE_HOOK_DIR"] != variables["EDGESHARE_TPU_HOOK_DIR"]
    assert variables["CUDA_VISIBLE_DEVICES"].startswith("GPU-")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--tpu", "7"), "--tpu 7: no such EdgeTPU here"),
        (("--tpu", "--memory-mib", "10"), "an EdgeTPU has none"),
        (("--tpu", "--gpu", "0"), "--gpu and --tpu name two devices"),
    ],
)
def test_what_cannot_be_is_refused(lab: Lab, arguments: tuple[str, ...], complaint: str) -> None:
    lab.manager()
    result = lab.edgeshare(*lab.run_arguments("--percent", "30", *arguments, "--", "true"))
    assert result.returncode == 1
    assert complaint in result.stderr
