"""What of PCI and USB is an accelerator."""

import pytest

from labeller.derive.accelerators import labels_of
from labeller.facts import BusFacts, CoralFacts


def pci(class_code: str, vendor: str, device: str = "0001") -> BusFacts:
    return BusFacts("pci", "0000:01:00.0", class_code, vendor, device)


def usb(class_code: str, vendor: str, product: str) -> BusFacts:
    return BusFacts("usb", "1-1", class_code, vendor, product)


@pytest.mark.parametrize(
    ("class_code", "vendor"),
    [("0300", "10de"), ("0302", "10de"), ("0380", "1002"), ("0b40", "1e60"), ("1200", "1da3"), ("1200", "19e5")],
)
def test_an_accelerator_is_labelled_by_class_and_maker(class_code: str, vendor: str) -> None:
    name = f"edge/pci-{class_code}_{vendor}"
    assert labels_of([], [pci(class_code, vendor)]) == {f"{name}.present": "true", f"{name}.count": "1"}


@pytest.mark.parametrize(
    ("class_code", "vendor"),
    [("0300", "1a03"), ("0300", "1234"), ("0380", "1af4"), ("0200", "15b3"), ("0b00", "8086"), ("", "10de")],
)
def test_what_shows_a_console_or_moves_data_is_none(class_code: str, vendor: str) -> None:
    assert labels_of([], [pci(class_code, vendor)]) == {}


def test_those_of_a_kind_are_counted() -> None:
    found = [pci("0302", "10de", "1db1"), pci("0302", "10de", "1eb8"), pci("0300", "8086")]
    labels = labels_of([], found)
    assert (labels["edge/pci-0302_10de.count"], labels["edge/pci-0300_8086.count"]) == ("2", "1")


def test_on_usb_vendor_and_product_tell() -> None:
    assert labels_of([], [usb("ff", "03e7", "2485"), usb("ff", "10c4", "ea60")]) == {
        "edge/usb-ff_03e7_2485.present": "true",
        "edge/usb-ff_03e7_2485.count": "1",
    }


def test_a_coral_keeps_its_labels_when_its_ids_change() -> None:
    before, after = CoralFacts("2-1", "usb", "1a6e", "089a"), CoralFacts("2-1", "usb", "18d1", "9302")
    assert labels_of([before], [usb("fe", "1a6e", "089a")]) == labels_of([after], [usb("ff", "18d1", "9302")])


def test_corals_are_counted_by_bus() -> None:
    corals = [CoralFacts("2-1", "usb", "1a6e", "089a"), CoralFacts("0000:03:00.0", "pcie", "1ac1", "089a")]
    assert labels_of([*corals, corals[1]], []) == {
        "edge/tpu.count": "3",
        "edge/tpu.usb.count": "1",
        "edge/tpu.pcie.count": "2",
    }
