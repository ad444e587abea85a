"""Memory that clients ask for is counted under the cap of their allocation, until they are gone."""

import os
import signal

from cuda_hook import wire
from edgeshare.client import ManagerClient
from edgeshare.v1.allocations_pb2 import Allocation
from tests.kit.manager.testbed import MIB, Manager, Testbed, share

PLAIN = wire.MemoryKind.PLAIN


def test_memory_is_counted_under_the_cap_for_all_clients_together(testbed: Testbed, two: tuple[str, str]) -> None:
    one, twin = testbed.join("one"), testbed.join("one")
    assert one.ask(wire.Reserve(1, 60 * MIB, 0, PLAIN)) == wire.Reserved(1, 100 * MIB, True)
    assert twin.ask(wire.Reserve(1, 60 * MIB, 0, PLAIN)) == wire.Reserved(1, 40 * MIB, False)
    one.send(wire.Freed(10 * MIB, 0, PLAIN))
    assert one.ask(wire.MemoryQuery(2, 0)) == wire.MemoryInfo(2, 100 * MIB, 50 * MIB)
    assert twin.ask(wire.Reserve(2, 50 * MIB, 0, PLAIN)) == wire.Reserved(2, 50 * MIB, True)
    twin.send(wire.Freed(50 * MIB, 0, PLAIN))
    # Answered once what came before is heard; nothing orders what two clients say.
    assert twin.ask(wire.MemoryQuery(3, 0)) == wire.MemoryInfo(3, 100 * MIB, 50 * MIB)
    one.send(wire.Freed(20 * MIB, 0, PLAIN))
    assert one.ask(wire.MemoryQuery(3, 0)) == wire.MemoryInfo(3, 100 * MIB, 30 * MIB)
    assert share(testbed.status(), "one").memory_used_bytes == 30 * MIB
    assert share(testbed.status(), "two").memory_used_bytes == 0


def test_memory_of_a_client_that_left_is_free_when_the_driver_lists_it_no_more(
    testbed: Testbed, two: tuple[str, str]
) -> None:
    one = testbed.join("one")
    one.ask(wire.Reserve(1, 60 * MIB, 0, PLAIN))
    one.close()
    testbed.until(lambda status: share(status, "one").memory_used_bytes == 0)
    twin = testbed.join("one")
    assert twin.ask(wire.Reserve(1, 100 * MIB, 0, PLAIN)) == wire.Reserved(1, 100 * MIB, True)


def test_a_process_that_is_back_is_not_charged_for_its_last_connection(testbed: Testbed, two: tuple[str, str]) -> None:
    for _ in range(20):
        one = testbed.join("one")
        assert one.ask(wire.Reserve(1, 60 * MIB, 0, PLAIN)) == wire.Reserved(1, 100 * MIB, True)
        one.close()


def test_an_answer_that_waits_for_the_driver_keeps_no_other_waiting_and_comes_though_it_says_nothing(
    testbed: Testbed, manager: Manager, calls: ManagerClient
) -> None:
    """Of a context that its client asked for and never made, on a model of which none was seen."""
    wanted = Allocation(id="small", device_ids=testbed.uuids[:1], request_percent=50, memory_mib=512)
    answers = calls.hold(wanted, wait_for_manager=False)
    next(answers)
    client = testbed.join("small")
    context = client.ask(wire.Reserve(1, 0, 0, wire.MemoryKind.CONTEXT))
    assert isinstance(context, wire.Reserved)
    assert context.granted
    os.kill(manager.process.pid, signal.SIGSTOP)
    os.waitpid(manager.process.pid, os.WUNTRACED)
    client.send(wire.MemoryQuery(2, 0))
    client.send(wire.Reserve(3, 512 * MIB, 0, PLAIN))
    client.send(wire.MemoryQuery(4, 0))
    os.kill(manager.process.pid, signal.SIGCONT)
    heard = [client.answer() for _ in range(3)]
    assert [each.number for each in heard if isinstance(each, wire.Reserved | wire.MemoryInfo)] == [2, 4, 3]
    assert isinstance(heard[2], wire.Reserved)
    assert heard[2].granted
    answers.close()
