import pytest
from hypothesis import given
from hypothesis import strategies as st

from deviceplugin.pods.pod_spec import parse_terms
from edgeshare.contract.errors import InvalidRequest
from edgeshare.contract.names import GPU_MEMORY_MIB, GPU_PERCENT
from edgeshare.contract.quantity import thousandths, whole_number
from sharemgr.cluster.state.pods import parse_pod


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("50", 50),
        ("+7", 7),
        ("16k", 16_000),
        ("8Ki", 8192),
        ("2Gi", 2 << 30),
        ("3E", 3 * 10**18),
        ("5e1", 50),
        ("5E3", 5000),
    ],
)
def test_whole_quantities_are_read(text: str, number: int) -> None:
    assert whole_number(text, "it") == number


@pytest.mark.parametrize(
    "text",
    ["", "-1", "1.5", "5 0", "50%", "0x32", "5m", "5ki", "5K", "1e-1", "1e999", "9" * 21, "٥", "50\n", "e1"],
)
def test_anything_else_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidRequest, match=r"^it is .*expected a whole number$"):
        whole_number(text, "it")


@given(st.text(max_size=30))
def test_no_text_does_worse_than_being_refused(text: str) -> None:
    try:
        number = whole_number(text, "it")
    except InvalidRequest:
        number = 0
    assert number >= 0


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("250m", 250),
        ("2", 2000),
        ("8Ki", 8_192_000),
        ("1k", 10**6),
        ("1e2", 10**5),
        ("3000u", 3),
        ("3001u", 4),
        ("1n", 1),
        ("0", 0),
        (2, 2000),
    ],
)
def test_parts_are_read_in_thousandths_and_rounded_up(text: str, number: int) -> None:
    assert thousandths(text, "it") == number


@pytest.mark.parametrize("text", ["", "-1", "1.5", "5 0", "5mi", "mm", "m", "9" * 21, "٥m"])
def test_what_is_no_quantity_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidRequest, match=r"^it is .*expected a quantity$"):
        thousandths(text, "it")


@pytest.mark.parametrize("amount", ["0", "16777217", "1Ei"])
def test_plugin_and_assigner_refuse_the_same_amounts_of_memory_in_the_same_words(amount: str) -> None:
    limits = {GPU_PERCENT: "30", GPU_MEMORY_MIB: amount}
    pod = {
        "metadata": {"namespace": "team", "name": "odd", "uid": "uid-1"},
        "spec": {"containers": [{"name": "main", "resources": {"limits": limits}}]},
    }
    with pytest.raises(InvalidRequest, match="ask for 1 or more, and at most 16777216, counted in MiB") as caught:
        parse_terms(pod, "main", 30)
    assert parse_pod(pod).fault == str(caught.value)
    limits[GPU_MEMORY_MIB] = "16777216"
    assert parse_terms(pod, "main", 30).memory_mib == 1 << 24
    assert not parse_pod(pod).fault
