"""Reading whatever lies where a kernel should have written."""

import os
import subprocess
from pathlib import Path

import pytest

from edgeshare.contract.errors import Unavailable
from edgeshare.inventory.tree import FILE_BYTES_MAX, NAMES_MAX, Tree
from simgpu.trees import link, write


def test_paths_are_the_machines_own(tmp_path: Path) -> None:
    write(tmp_path / "dev/apex_0", "")
    write(tmp_path / "dev/apex_1", "")
    assert Tree(tmp_path).matches("/dev/apex_*") == ["/dev/apex_0", "/dev/apex_1"]
    assert Tree(tmp_path).exists("/dev/apex_0")
    assert not Tree(tmp_path).exists("/dev/apex_2")


def test_the_machines_own_root_is_the_default() -> None:
    assert Tree().exists("/dev/null")
    assert "/dev/null" in Tree().matches("/dev/nul*")


def test_what_is_absent_is_nothing(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    write(tmp_path / "file", "1\n")
    assert (tree.read("/no"), tree.line("/no"), tree.number("/no"), tree.target("/no")) == (None, None, None, None)
    assert (tree.strings("/no"), tree.names("/no"), tree.matches("/no/*")) == ((), [], [])
    assert (tree.read("/file/below"), tree.names("/file")) == (None, [])


def test_folders_that_go_meanwhile_are_passed_over(tmp_path: Path) -> None:
    going = tmp_path / "devices/going"
    write(tmp_path / "devices/there/vendor", "")
    with subprocess.Popen(["/bin/sh", "-c", f"while mkdir -p {going}; do rmdir {going}; done"]) as loop:
        try:
            found = [Tree(tmp_path).matches("/devices/*/v*") for _ in range(20_000)]
        finally:
            loop.kill()
    assert found == [["/devices/there/vendor"]] * 20_000


def test_a_links_target_is_its_last_name(tmp_path: Path) -> None:
    write(tmp_path / "sys/devices/0000:03:00.0/vendor", "0x1ac1\n")
    link(tmp_path / "sys/class/apex/apex_0/device", tmp_path / "sys/devices/0000:03:00.0")
    assert Tree(tmp_path).target("/sys/class/apex/apex_0/device") == "0000:03:00.0"


def test_a_link_that_leads_to_itself_is_absent(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert not Tree(tmp_path).exists("/loop")
    assert Tree(tmp_path).target("/loop") is None
    with pytest.raises(Unavailable, match=r"^/loop cannot be read"):
        Tree(tmp_path).read("/loop")


def test_folders_are_told_from_files_and_from_links_to_them(tmp_path: Path) -> None:
    write(tmp_path / "there/inner/file", "")
    write(tmp_path / "there/file", "")
    link(tmp_path / "there/link", tmp_path / "there/inner")
    tree = Tree(tmp_path)
    assert tree.folders("/there") == ["inner"]
    assert (tree.folders("/no"), tree.folders("/there/file")) == ([], [])
    found = [tree.is_folder(f"/there/{name}") for name in ("inner", "file", "link", "no", "file/below")]
    assert found == [True, False, False, False, False]


def test_a_pipe_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Unavailable, match=r"^/pipe is not a plain file"):
        Tree(tmp_path).read("/pipe")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(Unavailable, match=r"^/folder is not a plain file"):
        Tree(tmp_path).read("/folder")
    # Of all that this process has open: other tests' threads open and close, too.
    assert str(tmp_path / "folder") not in map(os.path.realpath, Path("/proc/self/fd").iterdir())


def test_a_file_is_read_up_to_a_limit(tmp_path: Path) -> None:
    write(tmp_path / "full", "x" * FILE_BYTES_MAX)
    write(tmp_path / "over", "x" * (FILE_BYTES_MAX + 1))
    assert len(Tree(tmp_path).read("/full") or b"") == FILE_BYTES_MAX
    with pytest.raises(Unavailable, match=r"^/over is larger than 65536 bytes"):
        Tree(tmp_path).read("/over")


def test_a_file_without_an_end_is_read_up_to_a_limit() -> None:
    with pytest.raises(Unavailable, match=r"^/dev/zero is not a plain file"):
        Tree().read("/dev/zero")


def test_a_folder_is_listed_up_to_a_limit(tmp_path: Path) -> None:
    (tmp_path / "many").mkdir()
    for number in range(NAMES_MAX + 1):
        (tmp_path / "many" / str(number)).touch()
    with pytest.raises(Unavailable, match=r"^/many has more than 4096 entries"):
        Tree(tmp_path).names("/many")
    with pytest.raises(Unavailable, match=r"^/many/\* has more than 4096 entries"):
        Tree(tmp_path).matches("/many/*")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff\xfe", "holds no text"),
        (b"a\nb", "no plain line"),
        (b"\x07", "no plain line"),
        (b"a\0b", "no plain line"),
    ],
)
def test_what_is_no_line_of_text_is_said_in_one(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(Unavailable, match=f"^/file holds .*{said.removeprefix('holds ')}") as raised:
        Tree(tmp_path).line("/file")
    assert str(raised.value).isprintable()


def test_what_ends_a_line_is_left_out(tmp_path: Path) -> None:
    write(tmp_path / "sysfs", "ALIVE\n")
    write(tmp_path / "devicetree", "NVIDIA Jetson\0")
    assert (Tree(tmp_path).line("/sysfs"), Tree(tmp_path).line("/devicetree")) == ("ALIVE", "NVIDIA Jetson")
