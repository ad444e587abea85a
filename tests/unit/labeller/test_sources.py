"""What the sources make of a machine's files, and of what lies in their place."""

import os
from pathlib import Path

import pytest

from edgeshare.contract.errors import Unavailable
from edgeshare.inventory.tree import NAMES_MAX, Tree
from labeller.facts import BusFacts, DevicetreeNode
from labeller.sources import buses, devicetree, jetson
from simgpu.trees import JETSONS, add_jetson, add_usb_edgetpu, write

BASE = "sys/firmware/devicetree/base"


def node(root: Path, path: str, content: bytes) -> None:
    (root / BASE / path).mkdir(parents=True, exist_ok=True)
    (root / BASE / path / "compatible").write_bytes(content)


def release(root: Path, content: str) -> str:
    add_jetson(root, JETSONS["nano"])
    write(root / "etc/nv_tegra_release", content)
    facts = jetson.look(Tree(root))
    assert facts is not None
    return facts.release


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("# R21 (release), REVISION: 5.0, GCID: 7273100, BOARD: ardbeg, EABI: hard, DATE: Wed Jun 8 2016", "21.5.0"),
        ("# R24 (release), REVISION: 2.1, GCID: 8028265, BOARD: t210ref, EABI: aarch64", "24.2.1"),
        ("# R28 (release), REVISION: 1.0, GCID: 9379712, BOARD: t186ref, EABI: aarch64", "28.1.0"),
        ("# R32 (release), REVISION: 4.3, GCID: 21589087, BOARD: t210ref, EABI: aarch64", "32.4.3"),
        ("# R35 (release), REVISION: 4.1, GCID: 33958178, BOARD: t186ref, EABI: aarch64", "35.4.1"),
        ("# R36 (release), REVISION: 4.7, GCID: 42132812, BOARD: generic, EABI: aarch64", "36.4.7"),
        ("# R38 (release), REVISION: 2.0, GCID: 41844464, BOARD: generic, EABI: aarch64", "38.2.0"),
        ("# R38 (release), REVISION: 2.2", "38.2.2"),
        ("# R36 (release), REVISION: 4.0, GCID: 1\n# KERNEL_VARIANT: oot\nTARGET_USERSPACE_LIB_DIR=nvidia", "36.4.0"),
    ],
)
def test_every_release_of_jetson_linux_is_read(tmp_path: Path, line: str, expected: str) -> None:
    assert release(tmp_path, f"{line}\n") == expected


def test_a_jetson_may_have_no_release_file(tmp_path: Path) -> None:
    add_jetson(tmp_path, JETSONS["nano"])
    facts = jetson.look(Tree(tmp_path))
    assert facts is not None
    assert (facts.release, facts.memory_mib) == ("", 3964)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "#",
        "# R32 (release), REVI",
        "# R32 (release), REVISION: 4",
        "# R32 (release), REVISION: 4.",
        "# R32 (release), REVISION: 4.3~",
    ],
)
def test_a_release_file_that_is_cut_off_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(Unavailable, match=r"^/etc/nv_tegra_release begins with .*: install nvidia-l4t-core anew"):
        release(tmp_path, content)


def test_a_jetson_is_known_with_its_devicetree_alone(tmp_path: Path) -> None:
    node(tmp_path, "", b"nvidia,jetson-nano\0nvidia,tegra210\0")
    facts = jetson.look(Tree(tmp_path))
    assert facts is not None
    assert (facts.compatible, facts.model, facts.memory_mib) == (("nvidia,jetson-nano", "nvidia,tegra210"), "", 0)


def test_a_copy_of_proc_will_do(tmp_path: Path) -> None:
    write(tmp_path / "proc/device-tree/compatible", "nvidia,jetson-nano\0nvidia,tegra210\0")
    facts = jetson.look(Tree(tmp_path))
    assert facts is not None
    assert devicetree.look(Tree(tmp_path), ()) == (DevicetreeNode("", facts.compatible),)


def test_a_link_out_of_the_root_is_not_followed(tmp_path: Path) -> None:
    node(tmp_path / "other", "", b"nvidia,jetson-nano\0nvidia,tegra210\0")
    (tmp_path / "root/proc").mkdir(parents=True)
    (tmp_path / "root/proc/device-tree").symlink_to(tmp_path / "other" / BASE)
    assert devicetree.look(Tree(tmp_path / "root"), ("gpu",)) == ()


def test_another_makers_board_is_no_jetson(tmp_path: Path) -> None:
    node(tmp_path, "", b"raspberrypi,4-model-b\0brcm,bcm2711\0")
    assert jetson.look(Tree(tmp_path)) is None


def test_nodes_are_found_at_any_depth_with_and_without_unit_address(tmp_path: Path) -> None:
    node(tmp_path, "", b"a,board\0")
    node(tmp_path, "gpu", b"a,one\0")
    node(tmp_path, "bus@0/deep/deeper/gpu@17000000", b"a,two\0a,three\0")
    node(tmp_path, "gpu-thermal", b"a,other\0")
    node(tmp_path, "cpus/cpu@0", b"a,processor\0")
    (tmp_path / BASE / "thermal/gpu").mkdir(parents=True)
    tree = Tree(tmp_path)
    root = DevicetreeNode("", ("a,board",))
    assert devicetree.look(tree, ["gpu"]) == (
        root,
        DevicetreeNode("gpu", ("a,two", "a,three")),
        DevicetreeNode("gpu", ("a,one",)),
        DevicetreeNode("gpu", ()),
    )
    assert devicetree.look(tree, ["gpu@17000000"]) == (root, DevicetreeNode("gpu", ("a,two", "a,three")))
    assert devicetree.look(tree, []) == (root,)


def test_an_empty_devicetree_is_normal(tmp_path: Path) -> None:
    write(tmp_path / BASE / "name", "\0")
    assert devicetree.look(Tree(tmp_path), ("gpu",)) == (DevicetreeNode("", ()),)


def test_a_model_without_compatible_is_not_whole(tmp_path: Path) -> None:
    write(tmp_path / BASE / "model", "NVIDIA Jetson Nano Developer Kit\0")
    with pytest.raises(Unavailable, match=r"has a model but no compatible string"):
        devicetree.look(Tree(tmp_path), ())
    with pytest.raises(Unavailable, match=r"has a model but no compatible string"):
        jetson.look(Tree(tmp_path))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"nvidia,jetson-nano\0nvidia,teg", "does not end with a zero: it is cut off"),
        (b"\xd0\x0d\xfe\xed\0", "holds no text"),
        (b"\x01\x02\x03\0", "holds no plain line of text"),
        (b"a" * 5000 + b"\0", "is longer than 4096 bytes"),
        (b"a" * (1 << 20), "is larger than 65536 bytes"),
        (b"".join(b"a,%d\0" % number for number in range(300)), "names more than 256 compatible strings"),
    ],
)
@pytest.mark.parametrize("place", ["", "soc/gpu@0"])
def test_a_bad_compatible_is_refused(tmp_path: Path, place: str, content: bytes, why: str) -> None:
    node(tmp_path, "", b"a,board\0")
    node(tmp_path, place, content)
    with pytest.raises(Unavailable, match=why):
        devicetree.look(Tree(tmp_path), ("gpu",))


def test_an_endless_compatible_is_refused(tmp_path: Path) -> None:
    (tmp_path / BASE).mkdir(parents=True)
    (tmp_path / BASE / "compatible").symlink_to("/dev/zero")
    with pytest.raises(Unavailable, match="is not a plain file"):
        devicetree.look(Tree(tmp_path), ())


def test_a_pipe_for_compatible_holds_nobody_up(tmp_path: Path) -> None:
    (tmp_path / BASE).mkdir(parents=True)
    os.mkfifo(tmp_path / BASE / "compatible")
    with pytest.raises(Unavailable, match="is not a plain file"):
        devicetree.look(Tree(tmp_path), ())


def test_links_in_a_devicetree_lead_nowhere(tmp_path: Path) -> None:
    node(tmp_path, "bus/gpu", b"a,gpu\0")
    (tmp_path / BASE / "bus/loop").symlink_to("..")
    (tmp_path / BASE / "bus/gpu@1").symlink_to("gpu")
    assert [found.compatible for found in devicetree.look(Tree(tmp_path), ("gpu",))] == [(), ("a,gpu",)]


def test_a_devicetree_without_a_bottom_is_refused(tmp_path: Path) -> None:
    (tmp_path / BASE / "/".join(["n"] * 65)).mkdir(parents=True)
    with pytest.raises(Unavailable, match="is more than 64 nodes deep"):
        devicetree.look(Tree(tmp_path), ())


def test_the_deepest_devicetree_that_a_kernel_has_is_read(tmp_path: Path) -> None:
    node(tmp_path, "/".join([*["n"] * 63, "gpu"]), b"a,gpu\0")
    assert devicetree.look(Tree(tmp_path), ("gpu",))[1].compatible == ("a,gpu",)


def test_a_devicetree_with_too_many_nodes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devicetree, "NODES_MAX", 200)
    for number in range(10):
        for child in range(19):
            (tmp_path / BASE / f"n@{number}/m@{child}").mkdir(parents=True)
    assert devicetree.look(Tree(tmp_path), ())
    (tmp_path / BASE / "one-more").mkdir()
    with pytest.raises(Unavailable, match="has more than 200 nodes"):
        devicetree.look(Tree(tmp_path), ())


def test_a_node_with_too_many_children_is_refused(tmp_path: Path) -> None:
    for number in range(NAMES_MAX + 1):
        (tmp_path / BASE / f"n@{number}").mkdir(parents=True)
    with pytest.raises(Unavailable, match=f"more than {NAMES_MAX} entries"):
        devicetree.look(Tree(tmp_path), ())


def test_devices_on_pci_and_usb_are_listed_with_their_classes(tmp_path: Path) -> None:
    for name, code in (("vendor", "0x10de"), ("device", "0x1DB1"), ("class", "0x030200")):
        write(tmp_path / "sys/bus/pci/devices/0000:3b:00.0" / name, f"{code}\n")
    add_usb_edgetpu(tmp_path, "2-1.4", 4)
    for interface, code in (("1.0", "ff"), ("1.1", "0e"), ("1.2", "ff")):
        write(tmp_path / f"sys/bus/usb/devices/2-1.4/2-1.4:{interface}/bInterfaceClass", f"{code}\n")
    # A hub of the machine itself, which leads to the others.
    for name, code in (("idVendor", "1d6b"), ("idProduct", "0003"), ("bDeviceClass", "09")):
        write(tmp_path / "sys/bus/usb/devices/usb2" / name, f"{code}\n")
    for name, code in (("idVendor", "03E7"), ("idProduct", "2485"), ("bDeviceClass", "00")):
        write(tmp_path / "sys/bus/usb/devices/2-2" / name, f"{code}\n")
    for name, code in (("idVendor", "none"), ("idProduct", "2485"), ("bDeviceClass", "00")):
        write(tmp_path / "sys/bus/usb/devices/2-3" / name, f"{code}\n")
    assert buses.look(Tree(tmp_path)) == (
        BusFacts("pci", "0000:3b:00.0", "0302", "10de", "1db1"),
        BusFacts("usb", "2-1.4", "0e", "1a6e", "089a"),
        BusFacts("usb", "2-1.4", "ff", "1a6e", "089a"),
        # Nobody has set it up yet: it has no interfaces.
        BusFacts("usb", "2-2", "00", "03e7", "2485"),
    )


def test_a_device_that_says_nonsense_is_left_out(tmp_path: Path) -> None:
    good = tmp_path / "sys/bus/pci/devices/0000:01:00.0"
    bad = tmp_path / "sys/bus/pci/devices/0000:02:00.0"
    for folder, vendor in ((good, b"0x10de\n"), (bad, b"\xff\xfe\0\n")):
        folder.mkdir(parents=True)
        (folder / "vendor").write_bytes(vendor)
        (folder / "device").write_bytes(b"0x1db1\n")
        (folder / "class").write_bytes(b"0x030200\n")
    os.mkfifo(tmp_path / "sys/bus/pci/devices/pipe")
    assert [device.address for device in buses.look(Tree(tmp_path))] == ["0000:01:00.0"]
