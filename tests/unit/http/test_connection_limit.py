"""Which connection ends where there are too many."""

from hypothesis import given
from hypothesis import strategies as st

from edgeshare.http.connection_limit import ConnectionLimit


def test_nobody_ends_while_there_is_room() -> None:
    limit: ConnectionLimit[int] = ConnectionLimit(3, 2)
    assert [limit.admit(1, "a"), limit.admit(2, "a"), limit.admit(3, "b")] == [None, None, None]


def test_the_oldest_of_an_address_that_has_too_many_ends() -> None:
    limit: ConnectionLimit[int] = ConnectionLimit(100, 2)
    limit.admit(0, "b")
    assert [limit.admit(number, "a") for number in range(1, 5)] == [None, None, 1, 2]


def test_the_oldest_of_all_ends_where_each_address_has_as_many() -> None:
    limit: ConnectionLimit[int] = ConnectionLimit(3, 2)
    assert [limit.admit(number, str(number)) for number in range(5)] == [None, None, None, 0, 1]


def test_many_of_one_address_push_out_each_other_and_no_older_one_of_another() -> None:
    limit: ConnectionLimit[str] = ConnectionLimit(4, 3)
    limit.admit("honest", "a")
    for number in range(3):
        limit.admit(f"silent {number}", "b")
    assert [limit.admit(f"new {number}", "c") for number in range(2)] == ["silent 0", "silent 1"]


def test_who_is_renewed_is_the_youngest() -> None:
    limit: ConnectionLimit[int] = ConnectionLimit(2, 2)
    limit.admit(1, "a")
    limit.admit(2, "b")
    limit.renew(1)
    assert limit.admit(3, "c") == 2


def test_who_is_gone_leaves_room_and_is_not_ended_again() -> None:
    limit: ConnectionLimit[int] = ConnectionLimit(2, 1)
    limit.admit(1, "a")
    limit.remove(1)
    limit.remove(1)
    limit.renew(1)
    assert [limit.admit(2, "a"), limit.admit(3, "b"), limit.admit(4, "b")] == [None, None, 3]


@given(
    st.lists(st.tuples(st.sampled_from(["admit", "renew", "remove"]), st.integers(0, 9), st.sampled_from("abcd"))),
    st.integers(1, 6),
    st.integers(1, 6),
)
def test_there_are_never_too_many_and_one_ends_only_for_one_that_would_be_too_many(
    moves: list[tuple[str, int, str]], count_max: int, per_address_max: int
) -> None:
    limit: ConnectionLimit[int] = ConnectionLimit(count_max, per_address_max)
    held: list[tuple[int, str]] = []
    for number, (move, which, address) in enumerate(moves):
        if move == "admit":
            own = [each for each in held if each[1] == address]
            evicted = limit.admit(number, address)
            assert (evicted is None) == (len(own) < per_address_max and len(held) < count_max)
            held = [*(each for each in held if each[0] != evicted), (number, address)]
        elif which < len(held):
            chosen = held.pop(which)
            getattr(limit, move)(chosen[0])
            held += [chosen] if move == "renew" else []
        assert len(limit) == len(held) <= count_max
        assert all(sum(of == each for _, of in held) <= per_address_max for each in "abcd")
