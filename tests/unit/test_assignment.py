import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeshare.contract.assignment import MAX_BYTES, assigned_devices, parse_assignment, write_assignment
from edgeshare.contract.devices import is_device_id
from edgeshare.contract.errors import InvalidRequest

GPU = "GPU-692cb76b-6a1e-497f-b089-de2526838df1"


def test_it_is_compact_and_the_same_for_the_same_assignment() -> None:
    one = write_assignment({"main": (GPU,), "fetch": ("b", "a")})
    assert one == f'{{"fetch":["b","a"],"main":["{GPU}"]}}'
    assert one == write_assignment({"fetch": ("b", "a"), "main": (GPU,)})


@given(
    st.dictionaries(
        st.from_regex(r"[a-z0-9]([-a-z0-9]{0,10}[a-z0-9])?", fullmatch=True),
        st.lists(st.from_regex(r"[0-9A-Za-z][0-9A-Za-z._-]{0,20}[0-9A-Za-z]", fullmatch=True), min_size=1, max_size=16)
        .filter(lambda ids: len(set(ids)) == len(ids))
        .map(tuple),
        min_size=1,
        max_size=8,
    )
)
def test_what_is_written_is_read_as_it_was(assignment: dict[str, tuple[str, ...]]) -> None:
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
    assert all(ids and all(is_device_id(each) for each in ids) for ids in assignment.values())


def test_a_container_has_as_many_devices_as_it_asks_for() -> None:
    assignment = {"main": ("a",), "pair": ("a", "b")}
    assert assigned_devices(assignment, "main", 30) == ("a",)
    assert assigned_devices(assignment, "main", 100) == ("a",)
    assert assigned_devices(assignment, "pair", 200) == ("a", "b")
    with pytest.raises(InvalidRequest, match="names 1 devices for container main, whose 200 units are of 2"):
        assigned_devices(assignment, "main", 200)
    with pytest.raises(InvalidRequest, match="names 2 devices for container pair, whose 30 units are of 1"):
        assigned_devices(assignment, "pair", 30)
    with pytest.raises(InvalidRequest, match="names no device for container other"):
        assigned_devices(assignment, "other", 30)
    with pytest.raises(InvalidRequest, match="130 percent cannot be granted"):
        assigned_devices(assignment, "main", 130)
