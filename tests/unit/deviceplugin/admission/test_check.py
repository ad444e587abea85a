from dataclasses import replace

import pytest

from deviceplugin.admission.check import check_units
from deviceplugin.units.ledger import Allocation, Owner
from edgeshare.contract.devices import Device
from edgeshare.contract.errors import EdgeshareError, InvalidRequest, NoRoom, NotFound, Unavailable
from edgeshare.contract.units import unit_id

DEVICES = {name: Device(name, index, "Simulated", 8192) for index, name in enumerate(["GPU-b", "GPU-a", "GPU-c"])}


def units(device: str, count: int, first: int = 0) -> list[str]:
    return [unit_id(device, unit) for unit in range(first, first + count)]


@pytest.mark.parametrize("size", [1, 50, 99])
def test_a_part_of_one_device_is_handed_out(size: int) -> None:
    assert check_units(units("GPU-a", size), DEVICES, []) == (DEVICES["GPU-a"],)


def test_whole_devices_are_handed_out_by_index() -> None:
    chosen = units("GPU-a", 100) + units("GPU-b", 100)
    assert check_units(chosen, DEVICES, []) == (DEVICES["GPU-b"], DEVICES["GPU-a"])


LIVE = Allocation("gpu-1", frozenset(units("GPU-a", 30)), "hash", Owner("team", "trainer", "main"))

REFUSALS: dict[str, tuple[list[str], type[EdgeshareError], str]] = {
    "none": ([], InvalidRequest, "0 percent cannot be granted"),
    "130": (units("GPU-a", 100) + units("GPU-b", 30), InvalidRequest, "130 percent cannot be granted"),
    "a part of two devices": (
        units("GPU-a", 30, first=40) + units("GPU-b", 20),
        NoRoom,
        r"no single GPU has 50 of 100 units free \(the kubelet chose 30 of GPU-a, 20 of GPU-b\)",
    ),
    "whole devices in parts": (
        units("GPU-a", 60, first=40) + units("GPU-b", 40),
        NoRoom,
        r"100 units are 1 whole GPUs, but fewer are wholly free",
    ),
    "one whole device of two": (
        units("GPU-a", 100) + units("GPU-b", 60) + units("GPU-c", 40),
        NoRoom,
        r"200 units are 2 whole GPUs, but fewer are wholly free",
    ),
    "another node's device": (units("GPU-z", 10), NotFound, "no GPU GPU-z"),
    "a unit twice": (["GPU-a::50", "GPU-a::50"], InvalidRequest, "twice"),
    "not an id": (["/dev/nvidia0"], InvalidRequest, "no unit of a device"),
    "a live container's": (
        units("GPU-a", 10, first=25),
        NoRoom,
        "5 of these units, GPU-a::25 among them, are held by team/trainer/main",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_the_kubelet_must_not_start_is_refused_with_the_reason(name: str) -> None:
    chosen, error, text = REFUSALS[name]
    with pytest.raises(error, match=text) as caught:
        check_units(chosen, DEVICES, [LIVE])
    # An event mangles a percent sign, and a pod's condition is one line.
    assert "%" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_device_that_is_not_healthy_is_refused_with_its_cause() -> None:
    devices = {"GPU-a": replace(DEVICES["GPU-a"], healthy=False, cause="XID 79")}
    with pytest.raises(Unavailable, match="GPU-a is not healthy: XID 79"):
        check_units(units("GPU-a", 10), devices, [])
