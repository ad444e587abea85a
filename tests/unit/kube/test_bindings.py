"""How a Binding is sent: of one version of the pod, once, and when it was written."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import pytest

from edgeshare.contract.errors import Unavailable
from edgeshare.kube.calls import Calls
from edgeshare.kube.messages import Conflicting
from sharemgr.cluster.replica.api import KubeApi
from sharemgr.cluster.state.pods import SharePod
from tests.kit.apiserver.answering_server import (
    HANG_UP,
    Server,
    answer,
)

ASSIGNED = SharePod("u", "ns", "p", version="7", node="n", assignment="{}")


async def test_a_binding_is_of_one_version_of_the_pod(server: Server, calls: Calls) -> None:
    server.answers = [answer({"kind": "Status"}, 201), answer({"kind": "Status"}, 404)]
    await KubeApi(calls, nullcontext).bind(ASSIGNED)
    (asked,) = server.asked
    assert (asked.method, asked.path) == ("POST", "/api/v1/namespaces/ns/pods/p/binding")
    written = json.loads(asked.body)
    annotations = {"edge/gpu-assignment": "{}"}
    assert written["metadata"] == {"name": "p", "uid": "u", "resourceVersion": "7", "annotations": annotations}
    assert written["target"]["name"] == "n"
    with pytest.raises(Conflicting):
        await KubeApi(calls, nullcontext).bind(ASSIGNED)


async def test_a_binding_is_sent_once(server: Server, calls: Calls) -> None:
    # The second goes over a connection that was kept.
    server.answers = [answer({"kind": "Status"}, 201), HANG_UP, answer({"kind": "Status"}, 201)]
    await KubeApi(calls, nullcontext).bind(ASSIGNED)
    with pytest.raises(Unavailable) as raised:
        await KubeApi(calls, nullcontext).bind(ASSIGNED)
    assert type(raised.value) is Unavailable
    assert [each.method for each in server.asked] == ["POST", "POST"]


async def test_the_time_of_a_binding_is_that_of_the_api_server_also_where_it_refuses(
    server: Server, calls: Calls
) -> None:
    server.answers = [answer({"kind": "Status"}, 201), answer({"kind": "Status"}, 409)]
    asked_before_and_after = []

    @contextmanager
    def timing() -> Iterator[None]:
        before = len(server.asked)
        try:
            yield
        finally:
            asked_before_and_after.append((before, len(server.asked)))

    api = KubeApi(calls, timing)
    await api.bind(ASSIGNED)
    with pytest.raises(Conflicting):
        await api.bind(ASSIGNED)
    assert asked_before_and_after == [(0, 1), (1, 2)]
