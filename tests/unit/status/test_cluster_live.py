"""What is shown of a cluster again and again, also while its API server is away."""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import pytest

from edgeshare.cli.status.cluster import look
from edgeshare.cli.status.cluster_live import looks
from edgeshare.contract.errors import Unavailable
from edgeshare.contract.names import ACCELERATOR_NODES
from edgeshare.kube.kube import Kube
from edgeshare.shown.feed import CLUSTER_LOOK_S


class Answers:
    """What an API server lists: a node by each of these names in turn, or nothing where it is away."""

    def __init__(self, *names: str) -> None:
        self._names = iter(names)

    def objects(self, path: str, selector: str, keep: Callable[..., Any]) -> tuple[list[Any], str]:
        if path != ACCELERATOR_NODES:
            return [], ""
        name = next(self._names)
        if not name:
            raise Unavailable("nobody is there")
        return [keep({"metadata": {"name": name}})], ""


def test_an_api_server_that_goes_away_leaves_what_was_seen_and_says_so_until_it_is_back() -> None:
    pauses: list[float] = []
    seen = looks(partial(look, cast(Kube, Answers("n1", "", "", "n2"))), pauses.append)
    told = [next(seen) for _ in range(4)]
    away = "nobody is there"
    assert [(each.seen.nodes[0].name, each.stale) for each in told] == [
        ("n1", ""),
        ("n1", away),
        ("n1", away),
        ("n2", ""),
    ]
    assert [each.notice.partition(": ")[2] for each in told] == ["", away, away, ""]
    assert told[0].at_s == told[1].at_s == told[2].at_s < told[3].at_s
    assert pauses == [CLUSTER_LOOK_S] * 3


def test_one_that_is_not_there_to_begin_with_is_an_error() -> None:
    with pytest.raises(Unavailable, match="nobody is there"):
        next(looks(partial(look, cast(Kube, Answers("")))))
