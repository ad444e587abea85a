"""What is known of a machine while it cannot be read, or not for now."""

from pathlib import Path

import pytest

from labeller.collect import Collector
from labeller.config import Config
from labeller.facts import CoralFacts
from simgpu.trees import JETSONS, add_jetson, add_pcie_edgetpu, add_usb_edgetpu, remove_usb_edgetpu, write
from tests.kit.machine.clock import Clock

NS_PER_S = 1_000_000_000


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def collector(tmp_path: Path, clock: Clock) -> Collector:
    config = Config(root=tmp_path, sources=("jetson", "devicetree", "coral", "buses"))
    return Collector(config, clock)


def test_an_empty_machine_is_a_normal_one(collector: Collector) -> None:
    collected = collector.look()
    assert collected.facts.jetson is None
    assert (collected.facts.devicetree, collected.facts.corals, collected.facts.buses) == ((), (), ())
    assert (collected.troubles, collected.unread) == ({}, frozenset())


def test_what_cannot_be_read_for_now_is_what_it_was(tmp_path: Path, collector: Collector) -> None:
    add_jetson(tmp_path, JETSONS["nano"])
    before = collector.look()
    write(tmp_path / "etc/nv_tegra_release", "# R32 (rele")
    after = collector.look()
    assert after.facts == before.facts
    assert list(after.troubles) == ["jetson"]
    assert after.troubles["jetson"].startswith("/etc/nv_tegra_release begins with '# R32 (rele'")
    assert after.unread == frozenset()


def test_what_goes_is_gone(tmp_path: Path, collector: Collector) -> None:
    add_jetson(tmp_path, JETSONS["nano"])
    assert collector.look().facts.jetson is not None
    (tmp_path / "sys/firmware/devicetree/base/compatible").unlink()
    (tmp_path / "sys/firmware/devicetree/base/model").unlink()
    assert collector.look().facts.jetson is None


def test_what_could_never_be_read_is_unread_until_it_can(tmp_path: Path, collector: Collector) -> None:
    add_jetson(tmp_path, JETSONS["nano"])
    write(tmp_path / "etc/nv_tegra_release", "")
    collected = collector.look()
    assert (collected.facts.jetson, collected.unread) == (None, {"jetson"})
    assert collected.facts.devicetree != ()
    write(tmp_path / "etc/nv_tegra_release", "# R32 (release), REVISION: 4.3, GCID: 21589087\n")
    assert collector.look().unread == frozenset()


def test_a_source_that_is_not_wanted_is_not_asked(tmp_path: Path) -> None:
    add_jetson(tmp_path, JETSONS["nano"])
    facts = Collector(Config(root=tmp_path, sources=("jetson",))).look().facts
    assert facts.jetson is not None
    assert facts.devicetree == ()


def test_a_coral_that_leaves_the_bus_at_its_first_use_stays(tmp_path: Path, collector: Collector, clock: Clock) -> None:
    add_usb_edgetpu(tmp_path, "2-1", 4)
    assert collector.look().facts.corals == (CoralFacts("2-1", "usb", "1a6e", "089a"),)
    remove_usb_edgetpu(tmp_path, "2-1")
    clock.now_ns = 5 * NS_PER_S
    assert collector.look().facts.corals == (CoralFacts("2-1", "usb", "1a6e", "089a"),)
    add_usb_edgetpu(tmp_path, "2-1", 5, used=True)
    assert collector.look().facts.corals == (CoralFacts("2-1", "usb", "18d1", "9302"),)


def test_a_coral_that_is_pulled_out_goes(tmp_path: Path, collector: Collector, clock: Clock) -> None:
    add_usb_edgetpu(tmp_path, "2-1", 4)
    collector.look()
    remove_usb_edgetpu(tmp_path, "2-1")
    clock.now_ns = 10 * NS_PER_S
    assert collector.look().facts.corals == ()


def test_a_coral_on_pcie_goes_at_once(tmp_path: Path, collector: Collector) -> None:
    add_pcie_edgetpu(tmp_path, "0000:03:00.0", 0)
    assert collector.look().facts.corals == (CoralFacts("0000:03:00.0", "pcie", "1ac1", "089a"),)
    (tmp_path / "sys/bus/pci/devices/0000:03:00.0").unlink()
    assert collector.look().facts.corals == ()
