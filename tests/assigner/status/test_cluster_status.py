"""What the cluster part tells of use, and to whom: a real API server's tokens and rights, the command as users start
it, and real managers on simulated machines."""

import asyncio
import json
import os
import re
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from edgeshare.v1.cluster_pb2 import ClusterState, NodeState
from sharemgr.cluster.issuing.signing import certificate_end
from tests.kit.assigner.replicas import Replicas
from tests.kit.assigner.world import SAFETY_S, World, answering, complete, made, node, silent
from tests.kit.programs.binaries import GRPCURL, program

README = Path(__file__).parents[3] / "README.md"


def pods(state: ClusterState) -> list[tuple[str, str]]:
    """Node and pod of each allocation that was told."""
    return [(node.node, each.allocation.owner.pod) for node in state.nodes for each in node.status.allocations]


async def test_when_its_certificates_end_is_told_before_they_do(world: World, replicas: Replicas) -> None:
    replica = (await world.serve(replicas)).replica
    _, text = await replica.page("metrics")
    families = {each.name: each.samples for each in text_string_to_metric_families(text)}
    told = {each.labels["of"]: each.value for each in families["edgeshare_assigner_certificate_end_timestamp_seconds"]}
    of = {name: (world.certificates / f"{name}.crt").read_bytes() for name in ("status", "status-client")}
    assert told == {name: certificate_end(name, text).timestamp() for name, text in of.items()}
    (world.certificates / "status.crt").unlink()
    _, text = await replica.page("metrics")
    assert 'certificate_end_timestamp_seconds{of="status-client"}' in text
    assert 'of="status"}' not in text


async def test_use_is_told_of_pod_namespace_and_all_to_who_may_know_it(world: World, replicas: Replicas) -> None:
    a, b, name = world.namespace, f"{world.namespace}-b", f"{world.namespace}-1"
    with node(world, name, [(a, "web"), (b, "batch")]) as (testbed, _):
        asked = await world.serve(replicas)
        everybody, of_a, nobody = world.of_all("all"), world.of_one_namespace("a", a), world.token("nobody")
        whole = await asked.until(everybody, complete(name))
        mine = next(each for each in whole.nodes if each.node == name)
        assert [each.allocation for each in mine.status.allocations] == [
            each.allocation for each in testbed.status().allocations
        ]
        assert [each.allocated_percent for each in mine.status.devices] == [60, 0]
        assert mine.error == ""
        assert 0 < mine.told_at_ns <= whole.at_ns

        own = await asked.get(of_a, a)
        assert pods(own) == [(name, "web")]
        # What is said of the device is its own, and nothing of who else has it.
        assert [(each.id, each.memory_mib, each.allocated_percent) for each in own.nodes[0].status.devices] == [
            (testbed.uuids[0], mine.status.devices[0].memory_mib, 0)
        ]
        assert pods(await asked.get(of_a, a, "web")) == [(name, "web")]
        assert pods(await asked.get(everybody, b, "batch")) == [(name, "batch")]
        assert (await asked.refused(of_a, a, "other"))[0] == "NOT_FOUND"

        who = f"system:serviceaccount:{a}"
        assert await asked.refused(of_a, b) == (
            "PERMISSION_DENIED",
            f"{who}:a may not list the pods in namespace {b}, or give it that right (list pods)",
        )
        assert (await asked.refused(of_a, b, "batch"))[0] == "PERMISSION_DENIED"
        assert (await asked.refused(of_a))[0] == "PERMISSION_DENIED"
        assert (await asked.refused(nobody, a))[0] == "PERMISSION_DENIED"
        assert (await asked.refused(everybody, "", "web"))[0] == "INVALID_ARGUMENT"


async def test_who_has_no_token_that_holds_is_told_nothing(world: World, replicas: Replicas) -> None:
    asked = await world.serve(replicas)
    none = "there is no token: send 'authorization: Bearer TOKEN', as of `kubectl create token`"
    for token in (None, "", "x" * (17 << 10)):
        assert await asked.refused(token) == ("UNAUTHENTICATED", none)
    unknown = "the API server does not know this token: it is of another cluster, or holds no more"
    good = world.of_all("all")
    for token in ("nonsense", f"{good[:-8]}AAAAAAAA"):
        assert await asked.refused(token) == ("UNAUTHENTICATED", unknown)
    assert (await asked.until(good, lambda state: not state.stale_since_ns)).at_ns > 0


async def test_a_node_that_does_not_tell_is_named_with_the_reason_and_keeps_nobody_waiting(
    world: World, replicas: Replicas, tmp_path: Path
) -> None:
    own = world.namespace
    with ExitStack() as stack:
        stack.enter_context(node(world, f"{own}-well", [(own, "web")]))
        stack.enter_context(node(world, f"{own}-closed", [], clients="somebody-else"))
        good, other_name = (world.certificates / f"{name}.crt" for name in ("managers", "status"))
        foreign = made(tmp_path / "foreign") / "managers.crt"
        ports = {
            "silent": stack.enter_context(silent()),
            "nonsense": stack.enter_context(answering(good, b"\xff" * 8)),
            "large": stack.enter_context(answering(good, b"\n\x00" * (5 << 19))),
            "foreign": stack.enter_context(answering(foreign, b"")),
            "misnamed": stack.enter_context(answering(other_name, b"")),
            "gone": 9,
        }
        for name, port in ports.items():
            world.node(f"{own}-{name}", [])
            world.manager(port, f"{own}-{name}")
        world.node(f"{own}-unknown", [])
        asked = await world.serve(replicas)
        said = {
            "closed": "PERMISSION_DENIED the client's certificate names 'edgeshare-status': let in are somebody-else",
            "silent": "DEADLINE_EXCEEDED",
            "nonsense": "tells no status: is it another version's?",
            "large": "RESOURCE_EXHAUSTED",
            "foreign": "UNAVAILABLE",
            "misnamed": "UNAVAILABLE",
            "gone": "UNAVAILABLE",
            "unknown": "no address of its share manager is known",
        }

        def told_of(state: ClusterState) -> dict[str, NodeState]:
            return {each.node.removeprefix(f"{own}-"): each for each in state.nodes if each.node.startswith(own)}

        def holds(state: ClusterState) -> bool:
            """Each tells in a time of its own, and one that a busy machine keeps from it is asked again."""
            told = told_of(state)
            all_said = all(name in told and text in told[name].error for name, text in said.items())
            return complete(f"{own}-well")(state) and all_said

        told = told_of(await asked.until(world.of_all("all"), holds))
        assert {name for name, each in told.items() if each.HasField("status")} == {"well"}
        assert all(each.error.isprintable() and len(each.error) < 500 for each in told.values())


async def test_what_a_node_told_last_stays_when_it_is_away_and_is_said_to_be_of_then(
    world: World, replicas: Replicas
) -> None:
    own = world.namespace
    with node(world, own, [(own, "web")]) as (_, manager):
        asked = await world.serve(replicas)
        token = world.of_all("all")
        before = await asked.until(token, complete(own))
        manager.kill()
        away = "its share manager does not answer at"
        after = await asked.until(
            token, lambda state: any(own == each.node and away in each.error for each in state.nodes)
        )
    (told,) = [each for each in before.nodes if each.node == own]
    (stale,) = [each for each in after.nodes if each.node == own]
    assert [each.allocation for each in stale.status.allocations] == [
        each.allocation for each in told.status.allocations
    ]
    assert told.told_at_ns <= stale.told_at_ns < after.at_ns


async def test_what_is_wrong_with_what_is_asked_is_said_and_a_watch_needs_the_right_as_well(
    world: World, replicas: Replicas
) -> None:
    asked = await world.serve(replicas)
    assert await asked.watch_refused(world.of_all("all"), 1) == (
        "INVALID_ARGUMENT",
        "interval_ns 1 is too short: ask for 1000000000 or more, or 0",
    )
    assert (await asked.watch_refused(world.token("nobody"), 0))[0] == "PERMISSION_DENIED"
    assert (await asked.watch_refused(None, 0))[0] == "UNAUTHENTICATED"


async def test_the_pages_ten_lines_of_python_tell_who_has_what(
    world: World, replicas: Replicas, tmp_path: Path
) -> None:
    own = world.namespace
    (lines,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    with node(world, own, [(own, "web")]):
        asked = await world.serve(replicas)
        await asked.until(world.of_all("all"), complete(own))
        (tmp_path / "ca.crt").write_bytes(asked.root)
        words = (asked.address, str(tmp_path / "ca.crt"), world.of_one_namespace("me", own), own)
        program = await asyncio.create_subprocess_exec(
            sys.executable, "-c", lines, *words, stdout=asyncio.subprocess.PIPE, env={"PYTHONPATH": str(README.parent)}
        )
        async with asyncio.timeout(SAFETY_S):
            told, _ = await program.communicate()
    assert told.decode().splitlines() == [f"{own} web 30 0.0 "]


@pytest.fixture
def grpcurl(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is one. Built here, where no test's time is taken by that."""
    monkeypatch.setenv("PATH", f"{program(GRPCURL, 'grpcurl').parent}:{os.environ['PATH']}")


@pytest.mark.usefixtures("grpcurl")
async def test_the_pages_line_for_grpcurl_tells_who_has_what(world: World, replicas: Replicas, tmp_path: Path) -> None:
    own = world.namespace
    (line,) = re.findall(r"^grpcurl (?:.*\\\n)*.*$", README.read_text(), re.MULTILINE)
    with node(world, own, [(own, "web")]):
        asked = await world.serve(replicas)
        await asked.until(world.of_all("all"), complete(own))
        (tmp_path / "ca.crt").write_bytes(asked.root)
        token = world.of_one_namespace("me", own)
        for said, here in (("$(kubectl create token me)", token), ("team", own), ("127.0.0.1:9467", asked.address)):
            assert line.count(said) == 1
            line = line.replace(said, here)
        command = await asyncio.create_subprocess_shell(line, stdout=asyncio.subprocess.PIPE, cwd=tmp_path)
        async with asyncio.timeout(SAFETY_S):
            told, _ = await command.communicate()
    (only,) = json.loads(told)["nodes"]
    (allocation,) = only["status"]["allocations"]
    assert allocation["allocation"]["owner"]["pod"] == "web"


async def test_nobody_is_told_that_there_is_no_node_before_it_is_known_which_there_are(
    world: World, replicas: Replicas, tmp_path: Path
) -> None:
    # One that may review tokens, and list nothing.
    settings = json.loads(world.server.kubeconfig.read_text())
    settings["users"][0]["user"] = {"token": world.token("weak", ("clusterrolebindings", "system:auth-delegator"))}
    (tmp_path / "kubeconfig").write_text(json.dumps(settings))
    asked = await world.serve(replicas, kubeconfig=str(tmp_path / "kubeconfig"))
    code, why = await asked.refused(world.of_all("all"))
    assert (code, "still reading which nodes there are" in why) == ("UNAVAILABLE", True)
