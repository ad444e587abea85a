"""What differs between kinds of accelerator stands in one record, so that another kind is a handful of files."""

import re
from pathlib import Path

from cuda_hook import wire
from edgeshare.contract.accelerator_kind import KINDS, RESOURCES, kind_of
from edgeshare.contract.devices import Accelerator

ROOT = Path(__file__).parent.parent.parent
PARTS = ("cuda_hook", "deviceplugin", "edgeshare", "labeller", "sharemgr")

NAMING = re.compile(r"\b(EDGETPU|TPU_PERCENT|is (not )?(Accelerator\.)?GPU)\b")
NAME_A_KIND = {
    "cuda_hook/wire.py",  # its number on the wire
    "edgeshare/contract/devices.py",  # its name
    "edgeshare/contract/names.py",  # its resource's
    "edgeshare/contract/accelerator_kind.py",  # its record
    "edgeshare/inventory/corals.py",  # how such devices are found
    "edgeshare/cli/device_choice.py",  # its option
    "edgeshare/inventory/contested.py",  # NVIDIA's plugins have GPUs alone
    "edgeshare/cli/doctor/rules.py",  # what is asked of NVIDIA's driver
}
"""All that a kind touches, but for code of its own: ``edgeshare.inventory.edgetpu``, ``tpu_settings`` in
``sharemgr.node.serving``."""


def test_every_kind_has_its_record() -> None:
    assert set(KINDS) == set(Accelerator)
    assert {kind.wire_number for kind in KINDS.values()} == {number.value for number in wire.Accelerator}
    for name in ("prefix", "resource", "hook_dir", "hook_dir_variable", "wire_number", "word"):
        assert len({getattr(kind, name) for kind in KINDS.values()}) == len(KINDS), name


def test_numbers_on_the_wire_are_of_the_same_names() -> None:
    assert {kind.accelerator.name: kind.wire_number for kind in KINDS.values()} == {
        number.name: number.value for number in wire.Accelerator
    }


def test_resources_are_those_of_the_kinds() -> None:
    assert RESOURCES == ("edge/gpu-percent", "edge/tpu-percent")


def test_a_kind_that_is_not_known_has_no_record() -> None:
    assert kind_of("edgetpu") is KINDS[Accelerator.EDGETPU]
    assert kind_of("npu") is None


def test_another_kind_would_touch_a_handful_of_files() -> None:
    named = {
        str(path.relative_to(ROOT))
        for part in PARTS
        for path in (ROOT / part).rglob("*.py")
        if NAMING.search(path.read_text())
    }
    assert named == NAME_A_KIND
