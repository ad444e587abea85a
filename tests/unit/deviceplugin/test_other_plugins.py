import pytest

from deviceplugin.devices.other_plugins import ASK_S, KEPT_S, OtherPlugins
from edgeshare.contract.errors import Unavailable


class Kubelet:
    """What a kubelet knows of other plugins."""

    def __init__(self) -> None:
        self.others: dict[str, list[str]] = {"nvidia.com/gpu": ["GPU-a"]}
        self.away = False
        self.asked = 0

    async def ask(self) -> dict[str, list[str]]:
        self.asked += 1
        if self.away:
            raise Unavailable("no kubelet")
        return self.others


async def test_what_was_seen_is_believed_while_a_kubelet_knows_nothing_yet_and_not_for_ever() -> None:
    kubelet = Kubelet()
    other_plugins = OtherPlugins(kubelet.ask)
    assert await other_plugins.look(0) == {"nvidia.com/gpu": {"GPU-a"}}
    kubelet.others = {}
    assert await other_plugins.look(KEPT_S - 1) == {"nvidia.com/gpu": {"GPU-a"}}
    assert await other_plugins.look(KEPT_S) == {}


async def test_the_kubelet_is_asked_now_and_then_and_again_at_once_when_it_did_not_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    kubelet = Kubelet()
    kubelet.away = True
    other_plugins = OtherPlugins(kubelet.ask)
    assert await other_plugins.look(0) == await other_plugins.look(1) == {}
    assert kubelet.asked == 2
    assert len(caplog.records) == 1
    kubelet.away = False
    for now_s in (2, 2 + ASK_S - 1, 2 + ASK_S):
        assert await other_plugins.look(now_s) == {"nvidia.com/gpu": {"GPU-a"}}
    assert kubelet.asked == 4
