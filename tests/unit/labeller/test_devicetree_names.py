"""The names of k8s-dt-node-labeller."""

from labeller.derive.boards import devicetree_labels
from labeller.facts import DevicetreeNode


def labels(*compatible: str) -> dict[str, str]:
    return devicetree_labels([DevicetreeNode("", compatible)])


def test_vendor_and_part_are_joined() -> None:
    assert labels("nvidia,jetson-nano") == {"beta.devicetree.org/nvidia-jetson-nano": "1"}


def test_what_has_no_vendor_stays() -> None:
    assert labels("pwm-fan") == {"beta.devicetree.org/pwm-fan": "1"}


def test_xilinx_is_spelled_out() -> None:
    assert labels("xlnx,zynq-7000") == {"beta.devicetree.org/xilinx-zynq-7000": "1"}


def test_what_follows_a_second_comma_is_forgotten() -> None:
    assert labels("a,b,c") == {"beta.devicetree.org/a-b": "1"}


def test_nodes_are_counted() -> None:
    processors = [DevicetreeNode("cpu", ("arm,cortex-a57",))] * 4
    assert devicetree_labels(processors) == {"beta.devicetree.org/arm-cortex-a57": "4"}


def test_two_strings_that_they_take_for_one_are_counted_together() -> None:
    assert labels("a,b", "a-b") == {"beta.devicetree.org/a-b": "2"}


def test_what_no_label_can_hold_is_replaced() -> None:
    assert labels("nvidia,p3449+p3448") == {"beta.devicetree.org/nvidia-p3449-p3448": "1"}


def test_two_strings_that_only_a_label_takes_for_one_have_a_label_each() -> None:
    assert labels("a,b+c", "a,b-c") == {"beta.devicetree.org/a-b-c": "1", "beta.devicetree.org/a-b-c-2": "1"}


def test_a_string_too_long_for_a_label_is_cut() -> None:
    assert labels("a," + "b" * 100) == {f"beta.devicetree.org/a-{'b' * 61}": "1"}


def test_a_string_of_nothing_valid_has_no_label() -> None:
    assert labels(",", "+") == {}
