"""The labeller that runs on: what makes it look again, what it does on bad days, and that it ends."""

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import pytest

from simgpu.trees import JETSONS, add_jetson, write
from tests.kit.apiserver.scripted_api_server import ApiServer
from tests.kit.apiserver.server_side_apply import update_labels
from tests.kit.labeller.labeller_under_test import Labeller, Running

Start = Callable[..., Running]
READY = "edgeshare labeller: ready"
NEVER = "86400"
MODEL = "sys/firmware/devicetree/base/compatible"


def become(labeller: Labeller, board: str) -> None:
    """The machine is another, from one moment to the next: the labeller may be looking."""
    fresh = labeller.folder / "compatible"
    write(fresh, "".join(f"{name}\0" for name in JETSONS[board].compatible))
    fresh.replace(labeller.root / MODEL)


def look_again(running: Running, times: int) -> None:
    """It has looked so often when this is over: it takes in a SIGHUP between two looks."""
    for _ in range(times + 1):
        running.signal(signal.SIGHUP)
        running.until("SIGHUP: reading the configuration anew")


def spoil(labeller: Labeller) -> None:
    """What says which board it is cannot be read, from one moment to the next."""
    pipe = labeller.folder / "pipe"
    os.mkfifo(pipe)
    pipe.replace(labeller.root / MODEL)


def test_it_labels_at_its_start_and_looks_again_each_interval(api: ApiServer, nano: Labeller, start: Start) -> None:
    running = start("--interval", "1")
    running.until(READY)
    assert api.labels()["gpu.model"] == "Jetson-Nano"
    become(nano, "tx2")
    running.until("gpu.model=Jetson-TX2")
    assert api.labels()["gpu.model"] == "Jetson-TX2"
    # SIGTERM is how a kubelet ends it, and no failure; the labels stay.
    assert running.end() == 0
    assert api.labels()["gpu.model"] == "Jetson-TX2"


def test_labels_that_were_lost_are_written_again_before_it_looks_again(
    api: ApiServer, nano: Labeller, start: Start
) -> None:
    nano.configure(write_interval_s=1)
    running = start("--interval", NEVER)
    running.until(READY)
    # The machine is another, but is not looked at.
    become(nano, "tx2")
    update_labels(api.nodes["n1"], "kubectl-label", dict.fromkeys(api.labels()))
    running.until("gpu.model=Jetson-Nano")
    assert api.labels()["gpu.model"] == "Jetson-Nano"
    assert running.end() == 0


def test_sighup_reads_configuration_and_machine_anew(api: ApiServer, nano: Labeller, start: Start) -> None:
    running = start("--interval", NEVER)
    running.until(READY)
    become(nano, "tx2")
    nano.configure(devicetree_names=False)
    running.signal(signal.SIGHUP)
    running.until("gpu.model=Jetson-TX2")
    assert not any(name.startswith("beta.devicetree.org") for name in api.labels())
    before = api.labels().copy()
    nano.configure(sauces=[])
    running.signal(signal.SIGHUP)
    assert "the configuration holds as it was" in (line := running.until("unknown key 'sauces'"))
    assert str(nano.config) in line
    nano.configure(devicetree_names=False, output="nodefeature")
    running.signal(signal.SIGHUP)
    running.until("are read once: start the labeller anew")
    assert running.end() == 0
    assert api.labels() == before


def test_device_that_comes_makes_it_look_again(api: ApiServer, nano: Labeller, start: Start) -> None:
    devices = [path for path in Path("/sys/bus/pci/devices").glob("*/uevent") if os.access(path, os.W_OK)]
    if not devices:
        pytest.skip("this machine has no PCI device whose event could be made anew (as root)")
    running = start("--interval", NEVER)
    running.until(READY)
    assert not [line for line in running.lines if "WARNING" in line]
    become(nano, "tx2")
    # The kernel tells of it as if it had just come.
    devices[0].write_text("add")
    running.until("gpu.model=Jetson-TX2")
    assert running.end() == 0


def test_reading_that_fails_changes_no_label_and_is_said_once(api: ApiServer, nano: Labeller, start: Start) -> None:
    running = start("--interval", "1")
    running.until(READY)
    before = api.labels().copy()
    spoil(nano)
    running.until("compatible is not a plain file")
    look_again(running, times=3)
    assert api.labels() == before
    become(nano, "tx2")
    running.until("all that went wrong is over")
    assert api.labels()["gpu.model"] == "Jetson-TX2"
    assert running.end() == 0
    # The devicetree and the board itself are two sources.
    said = [line.partition("WARNING")[2] for line in running.lines if "compatible is not a plain file" in line]
    assert len(said) == len(set(said)) <= 2


def test_labels_of_an_earlier_life_stay_while_their_source_was_never_read(
    api: ApiServer, nano: Labeller, start: Start
) -> None:
    nano.once()
    before = api.labels().copy()
    spoil(nano)
    running = start("--interval", "1")
    running.until(READY)
    assert api.labels() == before
    become(nano, "tx2")
    running.until("gpu.model=Jetson-TX2")
    assert running.end() == 0


def test_api_server_that_is_away_is_asked_again_and_said_once(api: ApiServer, nano: Labeller, start: Start) -> None:
    api.broken = True
    running = start("--interval", "2")
    running.until("the labels stay as they are: the API server refuses GET /api/v1/nodes/n1: 503 etcd is away")
    running.until(READY)
    look_again(running, times=3)
    api.broken = False
    running.until("all that went wrong is over")
    assert api.labels()["gpu.model"] == "Jetson-Nano"
    assert running.end() == 0
    assert sum("503 etcd is away" in line for line in running.lines) == 1


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"<html>Sign in</html>", "is no API server: <html>Sign in</html>"),
        (b"[]", "is no API server: []"),
        (b"{}", "the API server's answer is no Node: metadata.uid is missing"),
    ],
)
def test_answer_of_something_else_leaves_the_labels(
    api: ApiServer, nano: Labeller, start: Start, answer: bytes, said: str
) -> None:
    running = start("--interval", NEVER)
    running.until(READY)
    before = api.labels().copy()
    become(nano, "tx2")
    api.nonsense = answer
    running.signal(signal.SIGHUP)
    running.until(said)
    assert api.labels() == before
    api.nonsense = b""
    running.until("gpu.model=Jetson-TX2")
    assert running.end() == 0


def test_refusal_leaves_the_labels_and_is_tried_again(api: ApiServer, nano: Labeller, start: Start) -> None:
    running = start("--interval", "1")
    running.until(READY)
    before = api.labels().copy()
    api.refused = {"PATCH"}
    become(nano, "tx2")
    running.until('403 User "somebody" cannot PATCH there')
    assert api.labels() == before
    api.refused = set()
    running.until("gpu.model=Jetson-TX2")
    assert running.end() == 0


def test_another_owners_label_is_said_once_until_it_is_free(api: ApiServer, nano: Labeller, start: Start) -> None:
    update_labels(api.nodes["n1"], "kubectl-label", {"gpu.model": "mine"})
    running = start("--interval", "1")
    running.until(begin := "label gpu.model=mine was set by 'kubectl-label' and stays")
    look_again(running, times=3)
    become(nano, "tx2")
    running.until("beta.devicetree.org/nvidia-tegra186=1")
    assert api.labels()["gpu.model"] == "mine"
    update_labels(api.nodes["n1"], "kubectl-label", {"gpu.model": None})
    running.until("gpu.model=Jetson-TX2")
    assert running.end() == 0
    said = [line.partition(begin)[2] for line in running.lines if begin in line]
    assert len(said) == len(set(said)) == 2  # one of each value that ours would be


def test_node_with_nothing_rests(api: ApiServer, labeller: Labeller, start: Start) -> None:
    running = start("--interval", NEVER)
    running.until(READY)
    look_again(running, times=3)
    assert api.applies == 0
    assert not [line for line in running.lines if "WARNING" in line]
    # It may be looking while the board is made, and then writes a part of it first.
    add_jetson(labeller.root, JETSONS["nano"])
    look_again(running, times=1)
    assert api.labels()["gpu.model"] == "Jetson-Nano"
    applies = api.applies
    look_again(running, times=3)
    assert running.end() == 0
    assert api.applies == applies


def test_sigterm_waits_for_no_api_server(api: ApiServer, nano: Labeller, start: Start) -> None:
    asked, answered = threading.Event(), threading.Event()

    def hang() -> None:
        asked.set()
        answered.wait()

    api.before_apply = hang
    running = start("--interval", "1")
    assert asked.wait(30)
    assert running.end() == 0
    answered.set()
    # The call would have ended by itself, with a line of the log.
    assert not [line for line in running.lines if "the labels stay as they are" in line]


def test_what_another_output_wrote_is_cleared(api: ApiServer, nano: Labeller, start: Start) -> None:
    nano.once()
    nano.configure(output="nodefeature")
    running = start("--interval", NEVER)
    running.until(READY)
    assert api.labels() == {}
    assert api.features
    assert running.end() == 0


def test_it_labels_and_watches_at_once(api: ApiServer, nano: Labeller, start: Start) -> None:
    nano.configure(metrics_address="127.0.0.1:0")
    running = start("--interval", NEVER, "--watch-usage")
    told = {running.until(READY).partition("ready, ")[2].split()[0] for _ in range(2)}
    assert told == {"looks", "metrics"}
    assert api.labels()["gpu.model"] == "Jetson-Nano"
    become(nano, "tx2")
    running.signal(signal.SIGHUP)
    running.until("gpu.model=Jetson-TX2")
    assert running.end() == 0


def test_without_an_interval_it_watches_and_labels_nothing(api: ApiServer, nano: Labeller, start: Start) -> None:
    nano.configure(metrics_address="127.0.0.1:0")
    running = start("--watch-usage")
    address = running.until(READY).split()[-1]
    with urlopen(address, timeout=30) as page:
        assert b"process_start_time_seconds" in page.read()
    running.signal(signal.SIGHUP)
    assert running.end() == 0
    assert api.labels() == {}


def test_metrics_that_cannot_be_served_end_it_with_a_line(api: ApiServer, nano: Labeller) -> None:
    nano.configure(metrics_address="192.0.2.1:1")
    done = nano.once("--watch-usage", "--interval", NEVER)
    assert done.returncode == 1
    assert "edgeshare: metrics_address 192.0.2.1:1: cannot be listened on" in done.stderr.splitlines()[-1]
