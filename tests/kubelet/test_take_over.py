"""A plugin that comes while another serves the node, as an update's new pod does: it waits, ready to take over."""

import signal

import pytest

from tests.kit.kubelet.node_under_test import Node, ended
from tests.kit.kubelet.pod import Pod

ON = {"metrics_address": "127.0.0.1:0"}
TAKES_OVER = "ready to take over"


async def test_a_second_plugin_is_ready_and_the_kubelet_hears_nothing_of_it(ready: Node) -> None:
    first = ready.plugin
    assert first is not None
    await ready.start_plugin(**ON)
    await ready.until_said(TAKES_OVER)
    assert f"pid {first.pid}" in ready.plugin_log.read_text()
    assert await ready.page("/readyz") == (200, "ok\n")
    assert ready.kubelet.asked == 1
    assert await ready.stop_plugin(signal.SIGTERM) == 0
    assert first.poll() is None
    assert len(ready.kubelet.registrations) == 1
    first.terminate()
    await ended(first)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_it_takes_over_with_all_that_the_first_has_handed_out(ready: Node, number: signal.Signals) -> None:
    first = ready.plugin
    assert first is not None
    await ready.start_plugin()
    await ready.until_said(TAKES_OVER)
    # Handed out after the second was started.
    await ready.kubelet.run(Pod("before", {"main": 60}))
    first.send_signal(number)
    await ended(first)
    await ready.kubelet.until(registrations=2, healthy=200)
    await ready.kubelet.run(Pod("after", {"main": 60}))
    found = await ready.until_allocations_are("before/main", "after/main")
    assert found["before/main"].device_ids != found["after/main"].device_ids
