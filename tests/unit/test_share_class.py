"""The classes of a share, as the proto files number them."""

from typing import get_args

import pytest

from edgeshare.contract.share_class import BY_WORD, NUMBERS, ShareClass, class_of
from edgeshare.v1 import allocations_pb2 as api


def test_each_class_has_the_number_of_the_proto_file() -> None:
    assert tuple(NUMBERS) == get_args(ShareClass)
    assert {f"SHARE_CLASS_{word.upper()}": number for word, number in NUMBERS.items()} == {
        name: number for name, number in api.ShareClass.items() if number != api.SHARE_CLASS_UNSPECIFIED
    }


@pytest.mark.parametrize("word", BY_WORD)
def test_a_class_is_read_as_it_was_told(word: str) -> None:
    assert class_of(NUMBERS[BY_WORD[word]]) == word


@pytest.mark.parametrize("number", [api.SHARE_CLASS_UNSPECIFIED, 99])
def test_what_is_no_class_is_read_as_batch(number: int) -> None:
    assert class_of(number) == "batch"
