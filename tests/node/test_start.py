"""How the manager starts, refuses to start, and ends."""

import os
import signal
import socket
import stat
from pathlib import Path

import pytest
import yaml

from edgeshare.contract.names import ALLOCATIONS_SOCKET, STATUS_SOCKET
from simgpu.trees import JETSONS, add_jetson
from tests.kit.manager.testbed import Manager, Testbed
from tests.kit.processes.rights import only_root
from tests.kit.processes.waiting import PATIENCE_S


def refused(testbed: Testbed, *said: str, config: str = "", **changes: str) -> None:
    """Asserts that no manager starts, that one line says why, and that nothing is left of it."""
    before = listing(testbed.root)
    result = testbed.edgeshare(*testbed.manager_arguments(config), **changes)
    assert result.returncode == 1
    assert result.stdout == ""
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    for words in said:
        assert words in lines[0]
    left = listing(testbed.root) - before
    assert not [path for path in left if path.is_socket() or path.suffix == ".json"]


def listing(root: Path) -> set[Path]:
    return set(root.rglob("*"))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_one_line_says_that_it_is_ready(testbed: Testbed, manager: Manager) -> None:
    assert manager.ready == (f"edgeshare sharemgr node: ready, 2 devices, 0 allocations, {testbed.runtime_dir}")


def test_only_the_status_is_open_to_everybody(testbed: Testbed, manager: Manager) -> None:
    assert mode(testbed.runtime_dir / STATUS_SOCKET) == 0o666
    assert mode(testbed.runtime_dir / ALLOCATIONS_SOCKET) == 0o600
    assert mode(testbed.runtime_dir / "clients") == 0o700


@only_root
def test_another_user_may_read_the_status_and_nothing_else(testbed: Testbed, manager: Manager) -> None:
    nobody = 65534

    def reach(name: str) -> int:
        pid = os.fork()
        if pid == 0:
            os.setuid(nobody)
            with socket.socket(socket.AF_UNIX) as client:
                os._exit(client.connect_ex(str(testbed.runtime_dir / name)) % 128)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    assert reach(STATUS_SOCKET) == 0
    assert reach(ALLOCATIONS_SOCKET) != 0


@pytest.mark.parametrize("signal_name", ["SIGTERM", "SIGINT"])
def test_a_signal_ends_it_cleanly(testbed: Testbed, manager: Manager, signal_name: str) -> None:
    manager.process.send_signal(signal.Signals[signal_name])
    assert manager.process.wait(PATIENCE_S) == 0
    assert not [path for path in listing(testbed.runtime_dir) if path.is_socket()]


def test_what_a_killed_manager_left_is_no_obstacle(testbed: Testbed, manager: Manager) -> None:
    manager.kill()
    assert (testbed.runtime_dir / STATUS_SOCKET).is_socket()
    testbed.manager()
    assert len(testbed.status().devices) == 2


@pytest.mark.parametrize("name", [STATUS_SOCKET, ALLOCATIONS_SOCKET])
def test_a_socket_that_somebody_listens_on_is_refused(testbed: Testbed, name: str) -> None:
    testbed.runtime_dir.mkdir()
    path = testbed.runtime_dir / name
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        refused(testbed, f"{path} is in use by another program", "--runtime-dir")
        assert path.is_socket()
    testbed.manager()


def test_a_file_in_a_sockets_place_is_refused_and_kept(testbed: Testbed) -> None:
    testbed.runtime_dir.mkdir()
    path = testbed.runtime_dir / STATUS_SOCKET
    path.write_text("precious")
    refused(testbed, f"{path} is there and is no socket")
    assert path.read_text() == "precious"


def test_a_missing_driver_is_said(testbed: Testbed) -> None:
    refused(testbed, "no NVIDIA driver", "libnvidia-ml.so.1", LD_LIBRARY_PATH="")


def test_a_driver_that_comes_later_is_waited_for_where_that_is_wished(testbed: Testbed) -> None:
    libraries = testbed.environment["LD_LIBRARY_PATH"].split(":")[0]
    place = testbed.root / "driver"
    place.mkdir()
    testbed.environment["LD_LIBRARY_PATH"] = str(place)
    manager = testbed.manager("wait_for_driver: true\n")
    assert "ready, 0 devices" in manager.ready
    assert not testbed.status().devices
    for library in Path(libraries).iterdir():
        (place / library.name).symlink_to(library)
    assert manager.process.stdout is not None
    assert "ready, 2 devices" in manager.process.stdout.readline()
    assert len(testbed.status().devices) == 2
    assert manager.end() == 0


def test_a_jetson_is_shared_without_nvml(testbed: Testbed) -> None:
    add_jetson(testbed.root / "host", JETSONS["nano"], "1421919056789")
    testbed.environment["LD_LIBRARY_PATH"] = ""
    manager = testbed.manager(
        f"inventory: {{root: {testbed.root / 'host'}, jetson_reserve_mib: 964, sources: [nvml, jetson]}}\n"
    )
    assert "ready, 1 devices" in manager.ready
    (device,) = testbed.status().devices
    assert (device.id, device.model, device.memory_mib) == ("1421919056789", "NVIDIA Jetson Nano", 3000)
    assert manager.end() == 0


def test_declared_devices_are_shared_and_one_that_goes_says_nothing_of_the_others(testbed: Testbed) -> None:
    dev = testbed.root / "host/dev"
    dev.mkdir(parents=True)
    for name in ("board0", "well"):
        (dev / name).touch()
    board = {"model": "Board", "memory_mib": 1000}
    declared = [
        {**board, "id": "board", "each": "/dev/board*"},
        {**board, "id": "ill", "paths": ["/dev/none"]},
        {**board, "id": "well", "paths": ["/dev/well"]},
        {"id": "npu", "model": "Hailo-8", "accelerator": "edgetpu", "paths": ["/dev/well"]},
    ]
    manager = testbed.manager(
        yaml.safe_dump({"inventory": {"root": str(testbed.root / "host"), "sources": [], "declared": declared}})
    )
    assert {device.id: device.healthy for device in testbed.status().devices} == {
        "board-board0": True,
        "ill": False,
        "well": True,
        "npu": True,
    }
    (dev / "board0").unlink()
    testbed.until(lambda status: [device.id for device in status.devices if device.healthy] == ["well", "npu"])
    (said,) = [line for line in manager.log().splitlines() if "healthy" in line]
    assert "(board-board0) is not healthy: it is no longer there" in said
    assert manager.end() == 0


def test_one_that_waits_for_a_driver_ends_when_it_is_told_to(testbed: Testbed) -> None:
    testbed.environment["LD_LIBRARY_PATH"] = ""
    manager = testbed.manager("wait_for_driver: true\n")
    assert manager.end() == 0
    assert not [path for path in listing(testbed.runtime_dir) if path.is_socket()]


def test_an_unknown_key_is_said_with_its_file(testbed: Testbed) -> None:
    refused(testbed, "manager.yaml: unknown key 'slice_ns'", "slice_ms", config="slice_ns: 5\n")


def test_a_runtime_directory_that_is_too_long_is_refused(testbed: Testbed) -> None:
    testbed.runtime_dir = testbed.root / ("long" * 30)
    refused(testbed, "longer than the 107 bytes", "--runtime-dir")


def test_a_directory_that_cannot_be_made_is_said(testbed: Testbed) -> None:
    testbed.state_dir = Path("/proc/edgeshare")
    refused(testbed, "/proc/edgeshare cannot be made")


def test_it_starts_after_it_was_refused(testbed: Testbed) -> None:
    refused(testbed, "unknown key", config="colour: red\n")
    testbed.manager()
