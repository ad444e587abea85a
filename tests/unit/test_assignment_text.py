import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeshare.contract.accelerator_kind import EDGETPU
from edgeshare.contract.assignment import MAX_BYTES, assigned_devices, parse_assignment, write_assignment
from edgeshare.contract.devices import Accelerator, is_device_id
from edgeshare.contract.errors import InvalidRequest

GPU, TPU = Accelerator.GPU, Accelerator.EDGETPU
UUID = "GPU-692cb76b-6a1e-497f-b089-de2526838df1"


def test_it_is_compact_and_the_same_for_the_same_assignment() -> None:
    one = write_assignment({GPU: {"main": (UUID,), "fetch": ("b", "a")}})
    assert one == f'{{"fetch":["b","a"],"main":["{UUID}"]}}'
    assert one == write_assignment({GPU: {"fetch": ("b", "a"), "main": (UUID,)}})


def test_a_container_with_others_than_gpus_has_a_list_for_each_resource() -> None:
    assignment = {GPU: {"main": (UUID,), "both": ("GPU-a",)}, TPU: {"both": ("0000:03:00.0",), "camera": ("2-1.4",)}}
    text = write_assignment(assignment)
    assert text == (
        '{"both":{"edge/gpu-percent":["GPU-a"],"edge/tpu-percent":["0000:03:00.0"]},'
        f'"camera":{{"edge/tpu-percent":["2-1.4"]}},"main":["{UUID}"]}}'
    )
    assert parse_assignment(text) == assignment


def containers(prefix: str) -> st.SearchStrategy[dict[str, tuple[str, ...]]]:
    """Of some containers the ids of devices of one kind."""
    device = st.from_regex(r"[0-9A-Za-z._-]{0,20}[0-9A-Za-z]", fullmatch=True).map(lambda rest: f"{prefix}{rest}")
    return st.dictionaries(
        st.from_regex(r"[a-z0-9]([-a-z0-9]{0,10}[a-z0-9])?", fullmatch=True),
        st.lists(device, min_size=1, max_size=16).filter(lambda ids: len(set(ids)) == len(ids)).map(tuple),
        min_size=1,
        max_size=8,
    )


@given(
    st.fixed_dictionaries({GPU: containers("G")}, optional={TPU: containers("T")})
    | st.fixed_dictionaries({TPU: containers("T")})
)
def test_what_is_written_is_read_as_it_was(assignment: dict[Accelerator, dict[str, tuple[str, ...]]]) -> None:
    assert parse_assignment(write_assignment(assignment)) == assignment


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no JSON: ''"),
        ("GPU-0", "is no JSON: 'GPU-0'"),
        ("[" * 10_000, "is no JSON"),
        ('{"main":["a"],"main":["b"]}', "is no JSON"),
        ('{"main":[1e999' + "9" * 5000 + "]}", "names what cannot be a device for container main: "),
        ("9" * 5000, "is no JSON"),
        ("[]", r"names no container: '\[\]'"),
        ("{}", "names no container"),
        ("null", "names no container"),
        ('{"Main":["a"]}', "names what cannot be a container: 'Main'"),
        ('{"":["a"]}', "names what cannot be a container: ''"),
        ('{"main":"GPU-0"}', "has no list of 1 to 16 devices for container main"),
        ('{"main":[]}', "has no list of 1 to 16 devices for container main"),
        ('{"main":["0","1","2","3","4","5","6","7","8","9","a","b","c","d","e","f","g"]}', "has no list of 1 to 16"),
        ('{"main":[0]}', "names what cannot be a device for container main: 0"),
        ('{"main":[null]}', "names what cannot be a device for container main: None"),
        ('{"main":["../../etc"]}', "names what cannot be a device for container main: '../../etc'"),
        ('{"main":["a::00"]}', "names what cannot be a device for container main: 'a::00'"),
        ('{"main":["a\\nb"]}', r"names what cannot be a device for container main: 'a\\nb'"),
        ('{"main":["a","a"]}', "names a device twice for container main"),
        ('{"main":{}}', "has no list of 1 to 16 devices for container main"),
        ('{"main":{"edge/tpu-percent":"a"}}', "has no list of 1 to 16 devices for container main"),
        ('{"main":{"edge/tpu-percent":["a"],"edge/tpu-percent":["b"]}}', "is no JSON"),
        ('{"main":{"edge/npu-percent":["a"]}}', "names what is not shared for container main: 'edge/npu-percent'"),
        ('{"main":{"edge/gpu-percent":["a"],"edge/tpu-percent":["a::00"]}}', "names what cannot be a device for"),
        ('{"main":{"edge/gpu-percent":["a"],"edge/tpu-percent":["a"]}}', "names a device as one of several kinds"),
        ('{"main":["a"],"camera":{"edge/tpu-percent":["a"]}}', "names a device as one of several kinds"),
        ('{"main":["' + "a" * MAX_BYTES + '"]}', f"has more than {MAX_BYTES} bytes"),
        ("é" * (MAX_BYTES // 2 + 1), f"has more than {MAX_BYTES} bytes"),
    ],
)
def test_anything_else_is_refused_in_one_short_line(text: str, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said) as caught:
        parse_assignment(text)
    message = str(caught.value)
    assert message.startswith("annotation edge/gpu-assignment ")
    assert message.endswith(": make the pod anew, without it")
    assert "\n" not in message
    assert len(message) < 250


@given(st.text(max_size=200) | st.from_regex(r'\{"[a-z]{0,3}":\[("[a-zA-Z:-]{0,5}",?){0,3}\]\}', fullmatch=True))
def test_nothing_but_a_refusal_comes_of_nonsense(text: str) -> None:
    try:
        assignment = parse_assignment(text)
    except InvalidRequest:
        return
    assert all(
        ids and all(is_device_id(each) for each in ids)
        for containers in assignment.values()
        for ids in containers.values()
    )


def test_a_container_has_as_many_devices_as_it_asks_for() -> None:
    assignment = {GPU: {"main": ("a",), "pair": ("a", "b")}, TPU: {"main": ("t",)}}
    assert assigned_devices(assignment, "main", 30) == ("a",)
    assert assigned_devices(assignment, "main", 100) == ("a",)
    assert assigned_devices(assignment, "pair", 200) == ("a", "b")
    with pytest.raises(InvalidRequest, match="names 1 GPUs for container main, whose 200 units are of 2"):
        assigned_devices(assignment, "main", 200)
    with pytest.raises(InvalidRequest, match="names 2 GPUs for container pair, whose 30 units are of 1"):
        assigned_devices(assignment, "pair", 30)
    with pytest.raises(InvalidRequest, match="names no GPU for container other"):
        assigned_devices(assignment, "other", 30)
    assert assigned_devices(assignment, "main", 30, EDGETPU) == ("t",)
    with pytest.raises(InvalidRequest, match="names no EdgeTPU for container pair"):
        assigned_devices(assignment, "pair", 30, EDGETPU)
    with pytest.raises(InvalidRequest, match="130 percent cannot be granted"):
        assigned_devices(assignment, "main", 130)
