"""What a context takes of a cap: measured, said where it does not fit, and known when the manager starts anew."""

import json
import re
import uuid

from edgeshare.v1.allocations_pb2 import Owner
from edgeshare.v1.status_pb2 import AllocationStatus
from simgpu.create import CONTEXT_OVERHEAD_MIB
from tests.kit.apiserver.serving import serving
from tests.kit.manager.memory_program import OUT_OF_MEMORY, SUCCESS, Program, held, measured
from tests.kit.manager.testbed import MIB, Manager, Testbed, share
from tests.kit.pages.pages import ON, Pages

SMALL_MIB = 100
"""Below a bare context."""


def refused(testbed: Testbed, allocation_id: str, owner: Owner | None = None) -> AllocationStatus:
    """What status says of an allocation whose programs tried in vain to make contexts, again and again."""
    with held(testbed, allocation_id, SMALL_MIB, owner):
        for _ in range(2):
            program = Program(testbed, allocation_id)
            try:
                assert [program.do("start"), program.do("create 0")] == [OUT_OF_MEMORY] * 2
            finally:
                program.end()
        return share(testbed.status(), allocation_id)


def test_a_cap_below_a_context_is_said_by_the_call_the_log_status_metric_and_an_event_of_the_pod(
    testbed: Testbed,
) -> None:
    """The size of a context is known from another on that GPU."""
    with serving(testbed.root) as (api, kubeconfig):
        manager = testbed.manager(f"{ON}node_name: n1\nkubeconfig: {kubeconfig}\n")
        with measured(testbed, 1):
            (context_bytes,) = share(testbed.status(), "one").memory_overhead_bytes
            uids = {"first": str(uuid.uuid4()), "second": str(uuid.uuid4())}
            for name, uid in uids.items():
                owner = Owner(namespace="team", pod=f"pod-{name}", pod_uid=uid, container="main")
                assert refused(testbed, name, owner).refused_context_bytes == context_bytes
            with held(testbed, "small", SMALL_MIB):
                program = Program(testbed, "small")
                try:
                    assert program.do("start") == OUT_OF_MEMORY
                    told = Pages(manager).values()["edgeshare_allocation_refused_context_bytes,small,,,"]
                finally:
                    program.end()
            assert told == context_bytes
            # An event of the first that was one too many would come before the second's.
            testbed.until(
                lambda _: {event["involvedObject"]["name"] for event in api.events} == {"pod-first", "pod-second"}
            )
        manager.end()
    events = {event["involvedObject"]["uid"]: event for event in api.events}
    assert len(api.events) == len(events) == 2
    context_mib = context_bytes // MIB
    for name, uid in uids.items():
        event = events[uid]
        assert event["involvedObject"] == {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "team",
            "name": f"pod-{name}",
            "uid": uid,
        }
        assert (event["type"], event["reason"]) == ("Warning", "GPUContextRefused")
        for said in (
            f"container main: a context on device 0 takes about {context_mib} MiB",
            f"the cap of {SMALL_MIB} MiB",
            "raise the cap (edge/gpu-memory-mib",
        ):
            assert said in event["message"]
    said = [line for line in manager.log().splitlines() if f"takes about {context_mib} MiB" in line]
    assert [re.findall(r"allocation (\w+):", line) for line in said] == [["first"], ["second"], ["small"]]


SMALL_CAP_MIB = 512


def passes_no_cap(testbed: Testbed) -> None:
    """Of a program that allocates at once after its first context, before the driver is looked at."""
    with held(testbed, "small", SMALL_CAP_MIB):
        program = Program(testbed, "small")
        try:
            assert program.do("start") == SUCCESS
            assert program.do(f"plain {(SMALL_CAP_MIB - CONTEXT_OVERHEAD_MIB + 1) * MIB}") == OUT_OF_MEMORY
            assert testbed.machine.gpus()[0].used_bytes <= SMALL_CAP_MIB * MIB
            # What a context was thought to take beyond what it takes comes back when it is measured.
            testbed.until(lambda status: share(status, "small").memory_used_bytes == CONTEXT_OVERHEAD_MIB * MIB)
            assert program.do(f"plain {(SMALL_CAP_MIB - CONTEXT_OVERHEAD_MIB) * MIB}") == SUCCESS
        finally:
            program.end()


def test_what_the_first_context_of_a_new_model_is_thought_to_take_refuses_nothing(
    testbed: Testbed, manager: Manager
) -> None:
    with held(testbed, "small", SMALL_CAP_MIB):
        program = Program(testbed, "small")
        try:
            assert program.do("start") == SUCCESS
            assert program.do(f"plain {(SMALL_CAP_MIB - CONTEXT_OVERHEAD_MIB) * MIB}") == SUCCESS
            testbed.until(lambda status: share(status, "small").memory_used_bytes == SMALL_CAP_MIB * MIB)
        finally:
            program.end()


def test_a_restarted_manager_knows_what_a_context_takes(testbed: Testbed) -> None:
    kept = testbed.state_dir / "contexts.json"
    before = testbed.manager()
    with measured(testbed, 1):
        pass
    before.end()
    (row,) = json.loads(kept.read_text())["contexts"]
    assert row["bytes"] == CONTEXT_OVERHEAD_MIB * MIB
    written_ns = kept.stat().st_mtime_ns
    after = testbed.manager()
    passes_no_cap(testbed)
    assert refused(testbed, "too-small").refused_context_bytes == CONTEXT_OVERHEAD_MIB * MIB
    after.end()
    assert kept.stat().st_mtime_ns == written_ns
