"""How many events of the driver's the hook keeps for itself: no more the longer a program runs."""

from random import Random

import pytest

from tests.kit.hook.manager import ScriptedManager
from tests.kit.hook.stage import SUCCESS, Client, Stage

EVENTS_PER_STREAM_MAX = 4
"""Of few streams as few batches are closed and not over; of many, the hook closes no more (closed.c)."""


def live_events(client: Client) -> int:
    client.tell("events")
    result, count = client.answer()
    assert result == SUCCESS
    return count


@pytest.mark.parametrize("streams", [1, 4, 50, 60])
def test_the_hooks_events_do_not_become_more_the_longer_a_program_runs(
    streams: int, stage: Stage, manager: ScriptedManager
) -> None:
    """So many kernels in all of them, and all are waited for, round after round; the program has no events."""
    manager.serve(contended=False)
    client = stage.client().ready().start()
    for _ in range(streams - 1):
        assert client.do("stream 1") == SUCCESS
    dice = Random(streams)
    most = 0
    for us in (300,) * 15 + (3, 20) * 4:
        assert client.do(f"spread {us} {dice.randrange(streams, 10 * streams)}") == SUCCESS
        most = max(most, live_events(client))
        assert client.do("sync") == SUCCESS
    assert 0 < most <= EVENTS_PER_STREAM_MAX * streams
