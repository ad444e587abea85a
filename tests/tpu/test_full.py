"""A program for which the allocation of an EdgeTPU has no room."""

import select

from edgeshare.v1.status_pb2 import NodeStatus
from tests.kit.manager.testbed import share
from tests.kit.tpu.tpu_lab import APEX, Lab, line, tell

REFUSALS = 6
"""So often it is refused that more than the grace time has gone by, if it asked each 0.1 s."""

OPENS = f"""
import os, sys
fd = os.open({APEX!r}, os.O_RDWR)
print("open", flush=True)
sys.stdin.readline()
os.close(fd)
"""


def pids(status: NodeStatus) -> list[int]:
    return [client.pid for client in share(status, "mine").clients]


def test_one_beyond_max_clients_opens_nothing_and_comes_in_once_there_is_room(lab: Lab) -> None:
    lab.manager("max_clients: 1\ngrace_s: 0.1\n")
    lab.allocate("mine", 30)
    first = lab.client("mine", OPENS)
    assert line(first) == "open"
    second = lab.client("mine", OPENS)
    lab.until(lambda status: share(status, "mine").offences["clients"] >= REFUSALS)
    assert pids(lab.status()) == [first.pid]
    assert select.select([second.stdout], [], [], 0)[0] == []
    tell(first)
    first.wait()
    assert line(second) == "open"
    assert pids(lab.status()) == [second.pid]
    tell(second)
    assert second.wait() == 0
    assert "max_clients" in (lab.root / "hook.log").read_text()
