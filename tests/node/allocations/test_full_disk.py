"""Folders of a manager on a disk that is full, or read only: real ones, which only root can mount."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from edgeshare.contract.names import ALLOCATIONS_SOCKET, HOOK_CONFIG, HOOK_SOCKET
from edgeshare.v1.allocations_pb2 import AddAllocationRequest, Allocation, Owner, RemoveAllocationRequest
from edgeshare.v1.allocations_pb2_grpc import AllocationsStub
from sharemgr.node.machine.store import FILE_NAME
from tests.kit.manager.allocations import channel, half
from tests.kit.manager.testbed import Testbed, ids
from tests.kit.processes.lease import leased
from tests.kit.processes.waiting import PATIENCE_S

PAGE_BYTES = 4096
DISK_BYTES = 64 * 1024
KEPT = 12

MOUNTED = """
mount --make-rprivate /
mount -t tmpfs -o size={bytes} tmpfs {folder}
echo mounted
read end
"""
"""Keeps a mount namespace, in which the folder is a small disk of its own, until its input ends."""


class Disk:
    """A small one, which whoever knows its path can use."""

    def __init__(self, keeper: "subprocess.Popen[str]", folder: Path) -> None:
        self._inside = ("nsenter", "--mount", f"--target={keeper.pid}")
        self._folder = folder
        self.path = Path(f"/proc/{keeper.pid}/root{folder}")
        self._filler = self.path / "filler"

    def fill(self, free_bytes: int = 0) -> None:
        """Leaves so much of it free."""
        with self._filler.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(PAGE_BYTES))
            except OSError:
                file.truncate(file.tell() - free_bytes)

    def empty(self) -> None:
        self._filler.unlink()

    def remount(self, how: str) -> None:
        subprocess.run([*self._inside, "mount", "-o", f"remount,{how}", self._folder], check=True)

    def files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.path.iterdir() if path != self._filler}


@pytest.fixture
def disk(testbed: Testbed) -> Iterator[Disk]:
    folder = testbed.root / "disk"
    folder.mkdir()
    script = MOUNTED.format(bytes=DISK_BYTES, folder=folder)
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(["unshare", "--mount", "sh", "-ec", script], text=True, **pipes) as keeper:
        assert keeper.stdout is not None
        assert keeper.stderr is not None
        if keeper.stdout.readline() != "mounted\n":
            pytest.skip(f"cannot mount here: {keeper.stderr.read().strip()}")
        yield Disk(keeper, folder)
        testbed.close()
        keeper.communicate(timeout=PATIENCE_S)


@pytest.fixture
def kept_there(testbed: Testbed, disk: Disk) -> Disk:
    """What survives a restart is on the disk."""
    testbed.state_dir = disk.path
    return disk


def kept(testbed: Testbed, number: int) -> Allocation:
    """One of those that fill more than a page of the disk together."""
    owner = Owner(namespace="n" * 63, pod=".".join(["p" * 62] * 4), pod_uid="u" * 36, container="c" * 63)
    return half(testbed, f"kept-{number}", request_percent=5, owner=owner)


def begin(testbed: Testbed) -> None:
    with channel(testbed, ALLOCATIONS_SOCKET) as opened:
        for number in range(KEPT):
            AllocationsStub(opened).AddAllocation(AddAllocationRequest(allocation=kept(testbed, number)))


def remove(testbed: Testbed) -> None:
    with channel(testbed, ALLOCATIONS_SOCKET) as opened:
        AllocationsStub(opened).RemoveAllocation(RemoveAllocationRequest(id="kept-0"))


def refusals(testbed: Testbed) -> Iterator[str]:
    """Why allocations are neither added nor removed."""
    with channel(testbed, ALLOCATIONS_SOCKET) as opened:
        stub = AllocationsStub(opened)
        for change in (
            lambda: stub.AddAllocation(AddAllocationRequest(allocation=half(testbed, request_percent=20))),
            lambda: stub.RemoveAllocation(RemoveAllocationRequest(id="kept-0")),
        ):
            with pytest.raises(grpc.RpcError) as caught:
                change()
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
            yield str(caught.value.details())


def served(testbed: Testbed) -> None:
    """All that was kept, to a client, too."""
    assert sorted(ids(testbed.status())) == sorted(f"kept-{number}" for number in range(KEPT))
    client = testbed.join("kept-0")
    client.request()
    client.granted()
    client.close()


@pytest.mark.parametrize("free_bytes", [0, PAGE_BYTES], ids=["full", "full in the middle of a file"])
def test_a_full_disk_refuses_changes_leaves_nothing_and_ends_nobody(
    testbed: Testbed, kept_there: Disk, free_bytes: int
) -> None:
    manager = testbed.manager()
    begin(testbed)
    before = kept_there.files()
    assert len(before[FILE_NAME]) > PAGE_BYTES
    kept_there.fill(free_bytes)
    for why in refusals(testbed):
        assert "allocations.json cannot be written: No space left on device" in why
        assert kept_there.files() == before
    served(testbed)
    manager.kill()
    manager = testbed.manager()
    served(testbed)
    assert len(list(refusals(testbed))) == 2
    kept_there.empty()
    remove(testbed)
    assert "kept-0" not in ids(testbed.status())
    assert "Traceback" not in manager.log()


def test_a_disk_that_is_read_only_refuses_changes_and_what_was_kept_is_served(
    testbed: Testbed, kept_there: Disk
) -> None:
    manager = testbed.manager()
    begin(testbed)
    before = kept_there.files()
    kept_there.remount("ro")
    for why in refusals(testbed):
        assert "allocations.json cannot be written: Read-only file system" in why
    served(testbed)
    manager.kill()
    manager = testbed.manager()
    served(testbed)
    assert kept_there.files() == before
    kept_there.remount("rw")
    remove(testbed)
    assert "kept-0" not in ids(testbed.status())
    assert "Traceback" not in manager.log()


def test_a_damaged_store_that_cannot_be_set_aside_is_left_and_said_in_a_line(
    testbed: Testbed, kept_there: Disk
) -> None:
    (kept_there.path / FILE_NAME).write_text("{")
    kept_there.remount("ro")
    done = testbed.edgeshare(*testbed.manager_arguments())
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert "allocations.json is damaged, and cannot be set aside: Read-only file system" in line
    assert kept_there.files() == {FILE_NAME: b"{"}


def test_a_manager_that_starts_on_a_full_disk_leaves_clients_the_folder_that_they_have_mounted(
    testbed: Testbed, disk: Disk
) -> None:
    testbed.runtime_dir = disk.path
    manager = testbed.manager()
    begin(testbed)
    before = testbed.folder("kept-0").stat().st_ino
    manager.kill()
    disk.fill()
    manager = testbed.manager()
    served(testbed)
    assert testbed.folder("kept-0").stat().st_ino == before
    with channel(testbed, ALLOCATIONS_SOCKET) as opened, pytest.raises(grpc.RpcError) as caught:
        AllocationsStub(opened).AddAllocation(AddAllocationRequest(allocation=half(testbed, request_percent=20)))
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert "cannot be made: No space left on device" in str(caught.value.details())
    assert not testbed.folder("half").exists()
    assert "Traceback" not in manager.log()


def test_what_a_starting_manager_cannot_serve_keeps_its_folder_and_is_served_once_it_can_be(testbed: Testbed) -> None:
    manager = testbed.manager()
    begin(testbed)
    manager.kill()
    folder = testbed.folder("kept-0")
    before = folder.stat().st_ino
    (folder / HOOK_SOCKET).unlink()
    in_the_way = folder / HOOK_SOCKET
    in_the_way.mkdir()
    manager = testbed.manager()
    assert "allocation kept-0 is kept, but cannot be served" in manager.log()
    assert folder.stat().st_ino == before
    in_the_way.rmdir()
    testbed.until(lambda _: in_the_way.exists())
    served(testbed)
    assert "allocation kept-0 is served again" in manager.log()


def test_a_lease_of_what_a_container_has_mounted_holds_up_no_manager(testbed: Testbed) -> None:
    manager = testbed.manager()
    begin(testbed)
    manager.kill()
    with leased(testbed.folder("kept-0") / HOOK_CONFIG) as taken:
        assert taken
        # With another grace time it says something else.
        manager = testbed.manager("grace_s: 7\n")
        served(testbed)
    assert "grace-ms=7000" in (testbed.folder("kept-0") / HOOK_CONFIG).read_text()
