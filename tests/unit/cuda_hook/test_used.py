"""What a client says in its hint page of its use of the device: its members, and what the manager reads of them."""

from typing import Any

import pytest

from cuda_hook._core import ffi, lib
from cuda_hook.gate import BESIDE_OTHERS, BESIDE_TELLS, GatePages


@pytest.fixture
def pages() -> GatePages:
    pages = GatePages.create(1)
    pages.close_fds()
    return pages


def client_of(pages: GatePages) -> Any:
    """The hint page as its client has it."""
    return ffi.addressof(pages._hint[0], "used")


def read(pages: GatePages) -> dict[str, int]:
    used = ffi.new("struct es_used *")
    pages.used(used)
    return {name: getattr(used, name) for name, _ in ffi.typeof("struct es_used").fields}


def test_a_fresh_page_says_nothing(pages: GatePages) -> None:
    assert set(read(pages).values()) == {0}


def test_version_1_has_its_pages_as_they_were(pages: GatePages) -> None:
    gate, hint = "struct es_gate_page", "struct es_hint_page"
    assert ffi.offsetof(gate, "device_uuids") == 40
    assert ffi.offsetof(gate, "beside") == 40 + lib.ES_DEVICES_MAX * lib.ES_UUID_BYTES
    assert ffi.offsetof(hint, "allowance_bytes") == 64
    assert ffi.offsetof(hint, "used") == 64 + 8 * lib.ES_DEVICES_MAX
    assert ffi.sizeof(gate) <= lib.ES_PAGE_BYTES
    assert ffi.sizeof(hint) <= lib.ES_PAGE_BYTES


def test_how_a_grant_is_held_stands_in_the_gate_page_until_it_is_opened_anew(pages: GatePages) -> None:
    pages.open(5, True, 1, beside=BESIDE_OTHERS | BESIDE_TELLS, cap_ns=20_000)
    assert (pages._gate.beside, pages._gate.cap_ns) == (BESIDE_OTHERS | BESIDE_TELLS, 20_000)
    pages.open(5, True, 2, beside=BESIDE_OTHERS)
    assert (pages._gate.beside, pages._gate.cap_ns) == (BESIDE_OTHERS, 0)
    pages.close()
    assert pages._gate.beside == BESIDE_OTHERS
    pages.open(6, True, 3)
    assert (pages._gate.beside, pages._gate.cap_ns) == (0, 0)


def test_what_a_host_leaves_between_its_kernels_is_idle_time_too(pages: GatePages) -> None:
    used = client_of(pages)
    lib.es_used_submit(used, 1000)
    lib.es_used_idle(used, 300)
    lib.es_used_drain(used, 2000)
    lib.es_used_submit(used, 2500)
    lib.es_used_idle(used, 40)
    assert read(pages)["idle_ns"] == 840


def test_idle_is_from_a_drain_to_a_submission(pages: GatePages) -> None:
    used = client_of(pages)
    lib.es_used_drain(used, 1000)
    assert read(pages)["idle_since_ns"] == 1000
    lib.es_used_drain(used, 1500)
    assert read(pages)["idle_since_ns"] == 1000
    lib.es_used_submit(used, 1800)
    assert (read(pages)["idle_ns"], read(pages)["idle_since_ns"], read(pages)["queued"]) == (800, 0, 1)
    lib.es_used_submit(used, 1900)
    lib.es_used_drain(used, 2000)
    lib.es_used_submit(used, 2010)
    assert read(pages)["idle_ns"] == 810


def test_who_waits_at_the_gate_is_not_idle(pages: GatePages) -> None:
    used = client_of(pages)
    lib.es_used_drain(used, 1000)
    lib.es_used_wait(used, True, 1300)
    assert read(pages) == dict.fromkeys(read(pages), 0) | {"idle_ns": 300, "waits": 1}
    lib.es_used_drain(used, 1400)
    assert read(pages)["idle_since_ns"] == 0
    lib.es_used_wait(used, False, 0)
    assert (read(pages)["waits"], read(pages)["idle_since_ns"], read(pages)["idle_ns"]) == (0, 0, 300)


def test_gpu_time_at_the_last_drain_is_kept(pages: GatePages) -> None:
    used = client_of(pages)
    lib.es_used_submit(used, 10)
    lib.es_used_count(used, 700)
    lib.es_used_drain(used, 900)
    lib.es_used_submit(used, 1000)
    lib.es_used_count(used, 50)
    assert (read(pages)["gpu_ns"], read(pages)["drained_gpu_ns"], read(pages)["queued"]) == (750, 700, 1)


def test_a_clock_that_stands_still_makes_no_idle_time(pages: GatePages) -> None:
    used = client_of(pages)
    lib.es_used_drain(used, 1000)
    lib.es_used_submit(used, 1000)
    lib.es_used_drain(used, 1000)
    lib.es_used_submit(used, 999)
    assert (read(pages)["idle_ns"], read(pages)["idle_since_ns"]) == (0, 0)
