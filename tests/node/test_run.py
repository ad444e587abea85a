"""``edgeshare run``: a command with a share."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgeshare.cli.device_choice import Choice, choose_devices
from edgeshare.cli.run import environment
from edgeshare.contract.errors import NoRoom, NotFound
from edgeshare.v1.allocations_pb2 import SHARE_CLASS_LATENCY, Allocation, HoldAllocationResponse
from edgeshare.v1.status_pb2 import DeviceStatus
from tests.kit.manager.testbed import GPU_MEMORY_MIB, Manager, Testbed, ids
from tests.kit.processes.forked import Forked
from tests.kit.processes.waiting import PATIENCE_S

WAITS = "import signal, sys; print('ready', flush=True); signal.pause()"


@pytest.fixture
def waiting(testbed: Testbed, manager: Manager) -> Iterator[Forked]:
    """A command that runs and waits for signals; its first line has been read."""
    process = testbed.fork(*testbed.run_arguments("--percent", "30", "--", sys.executable, "-c", WAITS))
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()


@pytest.mark.parametrize(
    ("device_ids", "visible"), [(["GPU-1", "GPU-2"], "GPU-1,GPU-2"), (["MIG-1"], "MIG-1"), (["1421919056789"], None)]
)
def test_a_program_is_shown_the_gpus_whose_ids_the_driver_knows(device_ids: list[str], visible: str | None) -> None:
    """Of a Jetson's it knows none: its programs would have no GPU."""
    answer = HoldAllocationResponse(allocation=Allocation(device_ids=device_ids), socket_path="/run/one/hook.sock")
    assert environment({}, answer, Path("/hook.so")).get("CUDA_VISIBLE_DEVICES") == visible


def run(testbed: Testbed, *arguments: str, **changes: str) -> "subprocess.CompletedProcess[str]":
    return testbed.edgeshare(*testbed.run_arguments(*arguments), **changes)


def printed(testbed: Testbed, *arguments: str, code: str, **changes: str) -> list[object]:
    """What Python code printed as JSON under ``edgeshare run``."""
    result = run(testbed, *arguments, "--", sys.executable, "-c", code, **changes)
    assert result.returncode == 0, result.stderr
    return list(json.loads(result.stdout))


@pytest.mark.parametrize("status", [0, 1, 7, 255])
def test_its_exit_status_is_the_commands(testbed: Testbed, manager: Manager, status: int) -> None:
    result = run(testbed, "--percent", "30", "--", "sh", "-c", f"echo out; echo err >&2; exit {status}")
    assert (result.returncode, result.stdout, result.stderr) == (status, "out\n", "err\n")
    testbed.until(lambda status: not status.allocations)


def test_a_signal_that_ends_the_command_is_told_as_shells_do(testbed: Testbed, manager: Manager) -> None:
    result = run(testbed, "--percent", "30", "--", "sh", "-c", "kill -SEGV $$")
    assert result.returncode == 128 + signal.SIGSEGV


@pytest.mark.parametrize(("command", "status"), [("no-such-command", 127), ("/etc/passwd", 126)])
def test_a_command_that_cannot_run_is_said_as_shells_do(
    testbed: Testbed, manager: Manager, command: str, status: int
) -> None:
    result = run(testbed, "--percent", "30", "--", command)
    assert result.returncode == status
    assert result.stderr.startswith(f"edgeshare run: {command}: ")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1"])
def test_signals_are_passed_on(testbed: Testbed, manager: Manager, name: str) -> None:
    # Blocked before it says that it is ready: a handler could run just before a pause, which then nothing ends.
    code = f"""
import signal, sys
awaited = {{signal.{name}}}
signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
print("ready", flush=True)
signal.sigwait(awaited)
sys.exit(42)
"""
    process = testbed.fork(*testbed.run_arguments("--percent", "30", "--", sys.executable, "-c", code))
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.Signals[name])
    assert process.wait(PATIENCE_S) == 42


def test_a_signal_that_the_command_dies_of_is_its_status(waiting: Forked) -> None:
    waiting.terminate()
    assert waiting.wait(PATIENCE_S) == 128 + signal.SIGTERM


def test_killing_it_kills_the_command_and_frees_the_share(testbed: Testbed, waiting: Forked) -> None:
    (allocation_id,) = ids(testbed.status())
    waiting.kill()
    waiting.wait(PATIENCE_S)
    # The pipe ends with its last writer, which is the command.
    assert waiting.stdout is not None
    assert waiting.stdout.read() == ""
    testbed.until(lambda status: not status.allocations)
    assert not testbed.folder(allocation_id).exists()


def test_a_command_of_several_lines_is_shown_in_one(testbed: Testbed, manager: Manager) -> None:
    result = run(testbed, "--percent", "30", "--", sys.executable, "-c", "import os\n\nos._exit(7)", "\x1b[2J" * 300)
    assert (result.returncode, result.stderr) == (7, "")


def test_the_command_finds_its_share_in_its_environment(testbed: Testbed, manager: Manager) -> None:
    code = """
import json, os
folder = os.environ["EDGESHARE_HOOK_DIR"]
print(json.dumps([folder, sorted(os.listdir(folder)), os.environ["CUDA_VISIBLE_DEVICES"], os.environ["LD_PRELOAD"]]))
"""
    libc = "/lib/x86_64-linux-gnu/libdl.so.2"
    folder, files, devices, preload = printed(testbed, "--percent", "30", "--gpu", "1", code=code, LD_PRELOAD=libc)
    assert str(folder).startswith(f"{testbed.runtime_dir}/clients/run-")
    assert files == ["hook.conf", "hook.sock"]
    assert devices == testbed.uuids[1]
    assert str(preload).endswith(f"/cuda_hook/libedgeshare_cuda.so:{libc}")


def test_what_is_asked_for_is_what_is_held(testbed: Testbed, manager: Manager) -> None:
    arguments = ("--percent", "30", "--limit", "60", "--memory-mib", "700", "--class", "latency", "--gpu")
    for gpu in ("1", testbed.uuids[1]):
        process = testbed.fork(*testbed.run_arguments(*arguments, gpu, "--", sys.executable, "-c", WAITS))
        assert process.stdout is not None
        process.stdout.readline()
        (held,) = (each.allocation for each in testbed.status().allocations)
        assert list(held.device_ids) == testbed.uuids[1:]
        assert (held.request_percent, held.limit_percent, held.memory_mib) == (30, 60, 700)
        assert held.share_class == SHARE_CLASS_LATENCY
        assert held.owner.command.startswith(sys.executable)
        process.terminate()
        process.wait(PATIENCE_S)


def test_whole_gpus_are_whole(testbed: Testbed, manager: Manager) -> None:
    code = "import json, os; print(json.dumps(os.environ['CUDA_VISIBLE_DEVICES'].split(',')))"
    assert printed(testbed, "--percent", "200", code=code) == testbed.uuids
    assert len(printed(testbed, "--percent", "100", code=code)) == 1


def test_it_takes_the_gpu_that_has_most_left(testbed: Testbed, manager: Manager) -> None:
    code = "import json, os; print(json.dumps([os.environ['CUDA_VISIBLE_DEVICES']]))"
    with testbed.calls() as calls:
        wanted = Allocation(id="first", device_ids=testbed.uuids[:1], request_percent=10)
        answers = calls.hold(wanted, wait_for_manager=False)
        next(answers)
        assert printed(testbed, "--percent", "30", code=code) == testbed.uuids[1:]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--percent", "130"), "130 percent cannot be granted"),
        (("--percent", "0"), "0 percent cannot be granted"),
        (("--percent", "50", "--limit", "40"), "a limit of 40 percent does not fit a request of 50"),
        (("--percent", "50", "--memory-mib", "99999"), "too few GPUs have 50 percent and 99999 MiB free"),
        (("--percent", "50", "--memory-mib", "99999", "--gpu", "0"), "asks for 99999 MiB of device GPU-"),
        (("--percent", "50", "--gpu", "7"), "--gpu 7: no such GPU here; there are: 0 (GPU-"),
        (("--percent", "50", "--gpu", "GPU-none"), "--gpu GPU-none: no such GPU here"),
        (("--percent", "200", "--gpu", "0"), "--gpu names one GPU"),
        (("--percent", "300"), "too few GPUs have 100 percent free (3 needed)"),
    ],
)
def test_what_cannot_be_had_is_said_in_one_line_and_nothing_runs(
    testbed: Testbed, manager: Manager, arguments: tuple[str, ...], said: str
) -> None:
    marker = testbed.root / "ran"
    result = run(testbed, *arguments, "--", "touch", str(marker))
    assert result.returncode == 1
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not marker.exists()
    assert not list(ids(testbed.status()))


def test_a_missing_manager_is_said_and_nothing_runs(testbed: Testbed) -> None:
    marker = testbed.root / "ran"
    result = run(testbed, "--percent", "50", "--", "touch", str(marker))
    assert result.returncode == 1
    assert f"no share manager answers at {testbed.runtime_dir}" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not marker.exists()


@pytest.mark.parametrize("ending", ["end", "kill"])
def test_it_holds_its_share_again_when_the_manager_is_back(
    testbed: Testbed, manager: Manager, waiting: Forked, ending: str
) -> None:
    (before,) = (each.allocation for each in testbed.status().allocations)
    getattr(manager, ending)()
    testbed.manager()
    status = testbed.until(lambda status: bool(status.allocations))
    assert [each.allocation for each in status.allocations] == [before]
    assert (testbed.folder(before.id) / "hook.sock").is_socket()
    waiting.terminate()
    assert waiting.wait(PATIENCE_S) == 128 + signal.SIGTERM
    testbed.until(lambda status: not status.allocations)


def test_what_a_killed_manager_held_is_cleared_away(testbed: Testbed, manager: Manager, waiting: Forked) -> None:
    (allocation_id,) = ids(testbed.status())
    manager.kill()
    waiting.kill()
    waiting.wait(PATIENCE_S)
    prepared = testbed.folder("prepared")
    prepared.mkdir()
    testbed.manager()
    assert not testbed.folder(allocation_id).exists()
    assert prepared.exists()


def test_python_leaves_no_trace_in_the_commands_signals(testbed: Testbed, manager: Manager) -> None:
    result = run(testbed, "--percent", "30", "--", "grep", "^Sig[BI]", "/proc/self/status")
    bare = subprocess.run(
        ["grep", "^Sig[BI]", "/proc/self/status"], capture_output=True, text=True, check=True, env=os.environ
    )
    assert result.stdout == bare.stdout


def device(index: int, **fields: object) -> DeviceStatus:
    plain: dict[str, object] = {"id": f"GPU-{index}", "index": index, "memory_mib": GPU_MEMORY_MIB, "healthy": True}
    return DeviceStatus(**{**plain, **fields})  # type: ignore[arg-type]


def test_most_units_then_most_memory_then_the_first() -> None:
    def chosen(*devices: DeviceStatus, count: int = 1, percent: int = 50, memory_mib: int = 0) -> list[str]:
        return choose_devices(devices, Choice(count, percent, memory_mib, None))

    assert chosen(device(0), device(1)) == ["GPU-0"]
    assert chosen(device(0, allocated_percent=1), device(1)) == ["GPU-1"]
    assert chosen(device(0, allocated_memory_mib=1), device(1)) == ["GPU-1"]
    assert chosen(device(0, healthy=False), device(1, allocated_percent=50)) == ["GPU-1"]
    assert chosen(device(0, allocated_memory_mib=8000), device(1, allocated_percent=50)) == ["GPU-1"]
    assert chosen(device(0), device(1), count=2, percent=100) == ["GPU-0", "GPU-1"]
    for devices, percent, said in (
        ((device(0, allocated_percent=51),), 50, "GPU 0 has 49 percent"),
        ((device(0, healthy=False, cause="XID 79"),), 50, "GPU 0 is unhealthy (XID 79)"),
        ((), 50, "there is no GPU"),
    ):
        with pytest.raises(NoRoom) as caught:
            chosen(*devices, percent=percent)
        assert said in str(caught.value)
    with pytest.raises(NotFound):
        choose_devices([device(0)], Choice(1, 50, 0, "1"))
