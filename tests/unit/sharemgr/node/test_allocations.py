"""The book of allocations: defaults, room, and what is refused."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from edgeshare.contract.devices import Device
from edgeshare.contract.errors import AlreadyExists, EdgeshareError, InvalidRequest, NoRoom, NotFound
from edgeshare.contract.units import COMMAND_CHARACTERS
from sharemgr.node.machine.allocations import Allocation, Book, Owner

DEVICES = (Device("GPU-a", 0, "Model", 40_000), Device("GPU-b", 1, "Model", 40_000))


def book(*, lend: bool = True) -> Book:
    return Book(DEVICES, lend)


def half(allocation_id: str = "one", device_id: str = "GPU-a") -> Allocation:
    return Allocation(allocation_id, (device_id,), 50)


def test_defaults_are_the_part_of_the_memory_and_the_nodes_limit() -> None:
    assert book().add(half()) == Allocation("one", ("GPU-a",), 50, 100, False, 20_000)
    assert book(lend=False).add(half()).limit_percent == 50


def test_adding_the_same_once_more_changes_nothing() -> None:
    full = book()
    added = full.add(Allocation("one", ("GPU-a",), 100))
    assert full.add(Allocation("one", ("GPU-a",), 100)) == added
    assert full.add(added) == added
    assert full.all() == (added,)


def test_an_id_stands_for_one_allocation() -> None:
    busy = book()
    busy.add(half())
    with pytest.raises(AlreadyExists, match="'one' is there already"):
        busy.add(replace(half(), request_percent=40))


def test_a_device_has_a_hundred_units() -> None:
    busy = book()
    busy.add(half("one"))
    busy.add(Allocation("two", ("GPU-a",), 30))
    with pytest.raises(NoRoom, match=r"requests 21 percent of device GPU-a, which has 20 left"):
        busy.add(Allocation("three", ("GPU-a",), 21))
    with pytest.raises(NoRoom):
        busy.add(Allocation("whole", ("GPU-b", "GPU-a"), 100))
    assert busy.allocated_percent("GPU-b") == 0
    assert busy.add(Allocation("three", ("GPU-a",), 20)).request_percent == 20
    assert busy.allocated_percent("GPU-a") == 100


def test_a_device_has_its_memory() -> None:
    busy = book()
    busy.add(replace(half("one"), memory_mib=30_000))
    with pytest.raises(NoRoom, match="asks for 20000 MiB of device GPU-a, which has 10000 left"):
        busy.add(half("two"))
    busy.add(replace(half("two"), memory_mib=10_000))
    assert busy.allocated_memory_mib("GPU-a") == 40_000


def test_whole_devices_are_allocated_together() -> None:
    busy = book()
    added = busy.add(Allocation("both", ("GPU-a", "GPU-b"), 100))
    assert added.memory_mib == 40_000
    assert busy.allocated_percent("GPU-a") == busy.allocated_percent("GPU-b") == 100


@pytest.mark.parametrize(
    ("allocation", "error", "words"),
    [
        (half(""), InvalidRequest, "1 to 63 of a-z"),
        (half("-a"), InvalidRequest, "letter or digit"),
        (half("a-"), InvalidRequest, "letter or digit"),
        (half("A"), InvalidRequest, "1 to 63"),
        (half("../up"), InvalidRequest, "1 to 63"),
        (half("a\n"), InvalidRequest, "1 to 63"),
        (half("a" * 64), InvalidRequest, "1 to 63"),
        (half(device_id="GPU-z"), NotFound, "'GPU-z', which this node has not: it has GPU-a, GPU-b"),
        (Allocation("one", (), 50), InvalidRequest, "names 0 devices"),
        (Allocation("one", ("GPU-a",) * 17, 100), InvalidRequest, "names 17 devices"),
        (Allocation("one", ("GPU-a", "GPU-a"), 100), InvalidRequest, "twice"),
        (Allocation("one", ("GPU-a",), 0), InvalidRequest, "requests 0 percent"),
        (Allocation("one", ("GPU-a",), 101), InvalidRequest, "requests 101 percent"),
        (Allocation("one", ("GPU-a", "GPU-b"), 50), InvalidRequest, "a part of one device"),
        (Allocation("one", ("GPU-a",), 50, 49), InvalidRequest, "limit of 49"),
        (Allocation("one", ("GPU-a",), 50, 101), InvalidRequest, "limit of 101"),
        (Allocation("one", ("GPU-a",), 50, memory_mib=40_001), InvalidRequest, "which has 40000"),
        (Allocation("one", ("GPU-a",), 50, memory_mib=-1), InvalidRequest, "-1 MiB"),
    ],
)
def test_what_can_never_be_is_refused_in_one_line(
    allocation: Allocation, error: type[EdgeshareError], words: str
) -> None:
    empty = book()
    with pytest.raises(error, match=words) as raised:
        empty.add(allocation)
    assert "\n" not in str(raised.value)
    assert empty.all() == ()


@pytest.mark.parametrize(
    ("owner", "words"),
    [
        (Owner(namespace="a" * 64), "namespace 'aaa"),
        (Owner(namespace="a.b"), "namespace 'a.b'"),
        (Owner(namespace="team\n"), "namespace"),
        (Owner(pod="p" * 254), "pod 'ppp"),
        (Owner(pod="../up"), "pod '../up'"),
        (Owner(pod="Train"), "pod 'Train'"),
        (Owner(pod="line\n" * 600_000), r"pod 'line\\nline"),
        (Owner(pod_uid="u" * 129), "pod_uid"),
        (Owner(pod_uid="u 1"), "pod_uid"),
        (Owner(container="c" * 64), "container"),
        (Owner(container="ma.in"), "container"),
        (Owner(command="c" * (COMMAND_CHARACTERS + 1)), f"command .* at most {COMMAND_CHARACTERS} "),
        (Owner(command="two\nlines"), "command"),
        (Owner(command="\x1b[2J"), "command"),
    ],
)
def test_an_owner_is_one_that_kubernetes_may_have(owner: Owner, words: str) -> None:
    busy = book()
    with pytest.raises(InvalidRequest, match=words) as raised:
        busy.add(replace(half(), owner=owner))
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 500
    busy.add(half())
    with pytest.raises(InvalidRequest, match=words):
        busy.update("one", owner=owner)
    assert busy.all() == (busy.add(half()),)


def test_names_may_be_as_long_as_kubernetes_lets_them_be() -> None:
    pod = ".".join(["p" * 63] * 3 + ["p" * 61])
    longest = Owner("n" * 63, pod, "0123abcd-" * 4, "c" * 63, "cömmand " * 25)
    assert book().add(replace(half(), owner=longest)).owner == longest
    # A static pod's uid is a hash of its manifest.
    assert book().add(replace(half(), owner=Owner(pod_uid="f" * 32))).owner.pod_uid


@pytest.mark.parametrize(
    "ask", [book().get, lambda name: book().add(half(name)), lambda name: book().add(half("a", name))]
)
def test_no_answer_is_as_long_as_a_name_that_is_refused(ask: Callable[[str], object]) -> None:
    with pytest.raises(EdgeshareError, match="3000000 characters") as raised:
        ask("n" * 3_000_000)
    assert len(str(raised.value)) < 500


def test_an_id_may_have_63_characters() -> None:
    assert book().add(half("a" * 63)).id == "a" * 63
    assert book().add(half("7")).id == "7"


def test_an_update_changes_only_what_it_names() -> None:
    busy = book()
    busy.add(half())
    assert busy.update("one", limit_percent=60).limit_percent == 60
    assert busy.update("one", latency=True) == Allocation("one", ("GPU-a",), 50, 60, True, 20_000)
    assert busy.update("one", owner=Owner(pod="p")).owner.pod == "p"
    assert busy.get("one").limit_percent == 60
    with pytest.raises(InvalidRequest, match="limit of 20"):
        busy.update("one", limit_percent=20)
    assert busy.get("one").limit_percent == 60
    with pytest.raises(NotFound, match="'two'"):
        busy.update("two", latency=True)


def test_what_is_removed_leaves_its_room() -> None:
    busy = book()
    added = busy.add(Allocation("one", ("GPU-a",), 100))
    assert busy.remove("one") == added
    assert busy.remove("one") is None
    assert busy.find("one") is None
    assert busy.add(Allocation("two", ("GPU-a",), 100)).id == "two"
