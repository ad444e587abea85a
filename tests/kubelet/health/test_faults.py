"""A device's health, from the driver and the file system to the kubelet, and over restarts."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

from deviceplugin.health.health_records import HealthRecords, Known
from deviceplugin.health.state import State
from edgeshare.contract.devices import Device
from tests.kit.kubelet.node_under_test import UUIDS, Node
from tests.kit.kubelet.pod import Pod

CALM_S = 0.5
PASSING_S = 3.0
"""Long enough to be told before it is over, also by a plugin that a busy machine holds up."""


def ill(node: Node) -> set[str]:
    """The devices with a unit that is not healthy; each has none that is."""
    units = node.kubelet.plugin.units
    found = {unit.partition("::")[0] for unit, health in units.items() if health != "Healthy"}
    assert not {unit for unit in node.kubelet.healthy() if unit.partition("::")[0] in found}
    assert len(units) == 200
    return found


async def start(node: Node, **health: Any) -> None:
    """A plugin with these settings of health, registered."""
    await node.start_plugin(health=health)
    await node.kubelet.until(registrations=1)


async def restart(node: Node, number: signal.Signals) -> None:
    registrations = len(node.kubelet.registrations)
    await node.stop_plugin(number)
    await node.start_plugin()
    await node.kubelet.until(registrations=registrations + 1)


async def test_a_fault_reaches_the_kubelet_at_once_and_not_at_the_next_look(node: Node) -> None:
    await node.start_plugin(rescan_s=600)
    await node.kubelet.until(healthy=200)
    node.machine.inject_xid(1, 62)
    await node.kubelet.until(healthy=100)
    assert ill(node) == {UUIDS[1]}


async def test_a_fault_is_over_after_a_reset_and_not_before(node: Node) -> None:
    await start(node)
    node.machine.inject_xid(0, 62)  # one with which it goes on answering
    await node.kubelet.until(healthy=100)
    # For three looks at least: that is what it takes the other one's file to go and come back.
    node.machine.remove_file(1)
    await node.kubelet.until(healthy=0)
    node.machine.restore_file(1)
    await node.kubelet.until(healthy=100)
    assert ill(node) == {UUIDS[0]}
    node.machine.reset(0)
    await node.kubelet.until(healthy=200)
    await node.until_said(f"GPU {UUIDS[0]} is healthy again")


async def test_a_lost_gpu_is_listed_with_its_fault_by_a_plugin_that_starts_anew(node: Node) -> None:
    await start(node)
    await node.kubelet.until(healthy=200)
    for number in (signal.SIGTERM, signal.SIGKILL):
        node.machine.inject_ecc(0, double=True)
        await node.kubelet.until(healthy=100)
        node.machine.inject_lost(0)
        await node.until_said("XID 79")
        await restart(node, number)
        await node.kubelet.until(healthy=100)
        assert ill(node) == {UUIDS[0]}
        node.machine.reset(0)
        await node.kubelet.until(healthy=200)


async def test_a_fault_outlives_the_plugin_and_the_kubelet(node: Node) -> None:
    await start(node)
    node.machine.inject_xid(1, 48)
    await node.kubelet.until(healthy=100)
    said = node.plugin_log.read_text()
    await node.kubelet.stop()
    await node.kubelet.start()
    await node.kubelet.until(healthy=100)
    await restart(node, signal.SIGKILL)
    await node.kubelet.until(healthy=100)
    assert ill(node) == {UUIDS[1]}
    # Since the time of the fault, not of the restart; and it is no news.
    (line,) = [line for line in said.splitlines() if "XID 48" in line]
    kept = json.loads((node.state_dir / f"health/{UUIDS[1]}.json").read_text())["state"]["conditions"]
    assert [condition["reason"] for condition in kept] == ["Xid"]
    assert node.plugin_log.read_text().count("not healthy: XID 48") == 1
    assert "since 20" in line


async def test_a_reset_while_the_plugin_is_away_is_seen(node: Node) -> None:
    await start(node)
    # A count of its memory's errors: that of a young machine's energy is soon as high as before.
    node.machine.inject_ecc(1, double=True)
    await node.kubelet.until(healthy=100)
    node.machine.inject_lost(1)
    await node.until_said("XID 79")
    await node.stop_plugin(signal.SIGTERM)
    node.machine.reset(1)
    await node.start_plugin()
    await node.kubelet.until(registrations=2, healthy=200)


async def test_a_gpu_that_is_lost_while_the_plugin_is_away_takes_a_reset_too(node: Node) -> None:
    await start(node)
    await node.kubelet.until(healthy=200)
    await node.stop_plugin(signal.SIGTERM)
    node.machine.inject_lost(1)
    await node.start_plugin()
    await node.kubelet.until(registrations=2, healthy=100)
    kept = json.loads((node.state_dir / f"health/{UUIDS[1]}.json").read_text())["state"]["conditions"]
    assert [(condition["reason"], condition["source"]) for condition in kept] == [("FellOffBus", "driver")]
    assert ill(node) == {UUIDS[1]}


async def test_a_memory_error_while_the_plugin_is_away_is_seen(node: Node) -> None:
    await start(node)
    await node.kubelet.until(healthy=200)
    await node.stop_plugin(signal.SIGTERM)
    node.machine.inject_ecc(0, double=True)
    await node.start_plugin()
    await node.kubelet.until(registrations=2, healthy=100)
    assert ill(node) == {UUIDS[0]}


async def test_heat_counts_from_the_limit_on_and_until_it_is_calm(node: Node) -> None:
    await start(node, temperature_limit_c=90, temperature_margin_c=10, temperature_calm_s=CALM_S)
    node.machine.set_temperature(0, 89)
    node.machine.set_temperature(1, 90)
    await node.kubelet.until(healthy=100)
    assert ill(node) == {UUIDS[1]}
    node.machine.set_temperature(1, 80)
    await asyncio.sleep(2 * CALM_S)
    assert ill(node) == {UUIDS[1]}
    node.machine.set_temperature(1, 79)
    await node.kubelet.until(healthy=200)


async def test_a_passing_xid_is_over_after_a_while_and_an_applications_is_none(node: Node) -> None:
    await start(node, passing_xid_quiet_s=PASSING_S)
    node.machine.inject_xid(0, 13)
    node.machine.inject_xid(1, 94)
    await node.kubelet.until(healthy=100)
    assert ill(node) == {UUIDS[1]}
    await node.kubelet.until(healthy=200)


async def test_the_ignored_xids_are_the_configurations(node: Node) -> None:
    await start(node, ignored_xids=[62])
    node.machine.inject_xid(0, 62)
    node.machine.inject_xid(1, 13)
    await node.kubelet.until(healthy=100)
    assert ill(node) == {UUIDS[1]}


async def test_a_gpus_file_that_goes_and_comes_back(node: Node) -> None:
    await start(node)
    await node.kubelet.until(healthy=200)
    node.machine.remove_file(1)
    await node.kubelet.until(healthy=100)
    assert ill(node) == {UUIDS[1]}
    await node.until_said("not healthy: /dev/nvidia1 is gone (file-system")
    node.machine.restore_file(1)
    await node.kubelet.until(healthy=200)


async def test_capacity_stays_while_devices_come_and_go(node: Node) -> None:
    """One after the other, both at once, and back."""
    await start(node)
    for healthy, change in (
        # By a count: one reset soon after another cannot be told by energy, which is soon as high as before.
        (100, lambda: node.machine.inject_ecc(0, double=True)),
        (200, lambda: node.machine.reset(0)),
        (100, lambda: node.machine.inject_ecc(1, double=True)),
        (0, lambda: node.machine.inject_ecc(0, double=True)),
        (100, lambda: node.machine.reset(1)),
        (200, lambda: node.machine.reset(0)),
    ):
        change()
        await node.kubelet.until(healthy=healthy)
        assert len(node.kubelet.plugin.units) == 200


async def test_containers_keep_their_units_of_a_device_that_fails(ready: Node) -> None:
    pod = Pod("trainer", {"main": 40})
    before = (await ready.kubelet.run(pod))["main"]
    held = ready.kubelet.held[pod.uid, "main"]
    gpu = UUIDS.index(next(iter(held)).partition("::")[0])
    ready.machine.inject_xid(gpu, 62)
    await ready.kubelet.until(healthy=100)
    assert not held & ready.kubelet.healthy()
    # It may start again: whether its device can be used is for it to find out, and for its owner to decide.
    assert await ready.kubelet.start_container(pod, "main") == before


def this_boot() -> str:
    """The kernel's id of it."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


async def test_a_mig_device_that_was_unmade_while_the_plugin_was_away_is_listed_no_more(node: Node) -> None:
    boot_id = this_boot()
    records = HealthRecords(node.state_dir / "health")
    for name, parent in (("MIG-unmade", UUIDS[0]), ("MIG-of-a-lost-gpu", "GPU-elsewhere")):
        device = Device(name, 7, "Simulated MIG 1g", 1000, source="nvml", parent=parent)
        records.write(Known(device, State(boot_id=boot_id)))
    await node.start_plugin()
    await node.kubelet.until(healthy=200, listed=300)
    assert "MIG-of-a-lost-gpu::00" in node.kubelet.plugin.units
    assert not (node.state_dir / "health/MIG-unmade.json").exists()
