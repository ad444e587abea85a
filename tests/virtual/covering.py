"""Parts of products in which any two values of different factors still meet. Pure."""

from collections.abc import Iterable
from itertools import product


def covering(rows: Iterable[str], *sizes: int) -> tuple[str, ...]:
    """Of the rows of a product of factors of these sizes, in its order (the last factor goes round fastest), those in
    which the smallest factor's value is taken in turn, by the places of the others. Raises ValueError for rows that are
    not such a product's."""
    least = sizes.index(min(sizes))
    places = product(*map(range, sizes))
    return tuple(
        row
        for row, place in zip(rows, places, strict=True)
        if (sum(place) - place[least]) % sizes[least] == place[least]
    )
