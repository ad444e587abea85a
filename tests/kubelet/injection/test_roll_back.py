"""A plugin of another version finds what was handed out before, and lets no container start without the hook that it
was set up with."""

import hashlib
import json
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from deviceplugin.inject.library import HASH_LENGTH
from edgeshare.kubelet.v1beta1 import deviceplugin_pb2 as api
from tests.kit.kubelet.node_under_test import Node
from tests.kit.kubelet.pod import Pod, StartError

LOOKS = 3
"""When the kubelet was asked for a list so often, what hangs on all but the last one has been done."""


def mounted(answer: api.ContainerAllocateResponse) -> dict[str, Path]:
    """What a container mounts, by the last part of where it finds it."""
    return {Path(mount.container_path).name: Path(mount.host_path) for mount in answer.mounts}


def by_another_version(node: Node, pod: Pod, **record: Any) -> tuple[Path, Path]:
    """Changes what lies there for a pod and what its kubelet knows to what another version would have made: with a
    library of its own, and these keys in the record. Returns that library and the record."""
    answer = node.kubelet.answers[pod.uid, "main"]
    before = mounted(answer)
    content = before["libedgeshare_cuda.so"].read_bytes() + b"another"
    library_hash = hashlib.sha256(content).hexdigest()[:HASH_LENGTH]
    library = before["libedgeshare_cuda.so"].parents[1] / library_hash / "libedgeshare_cuda.so"
    library.parent.mkdir()
    library.write_bytes(content)
    library.chmod(0o555)
    old_hash = before["libedgeshare_cuda.so"].parent.name
    for mount in answer.mounts:
        mount.host_path = mount.host_path.replace(old_hash, library_hash)
        mount.container_path = mount.container_path.replace(old_hash, library_hash)
    for file in (before["ld.so.preload"], before["edgeshare"] / "library"):
        file.write_text(file.read_text().replace(old_hash, library_hash))
    file = before["ld.so.preload"].parent / "record.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "library": library_hash, **record}))
    return library, file


async def start_again(node: Node) -> None:
    """The plugin is started again, and has compared everything."""
    await node.start_plugin()
    await node.kubelet.until(registrations=2, healthy=200)
    await node.kubelet.until_listed(LOOKS)


def has_hook(answer: api.ContainerAllocateResponse) -> bool:
    """Whether the loader of its container finds what the container is told to preload."""
    library = mounted(answer)["libedgeshare_cuda.so"]
    inside = next(m.container_path for m in answer.mounts if m.container_path.endswith("/libedgeshare_cuda.so"))
    return library.is_file() and mounted(answer)["ld.so.preload"].read_text() == f"{inside}\n"


async def test_a_record_with_a_key_that_is_not_known_counts_and_keeps_it(ready: Node) -> None:
    pod = Pod("trainer", {"main": 30})
    await ready.kubelet.run(pod)
    before = await ready.allocations()
    await ready.stop_plugin(signal.SIGTERM)
    _, record = by_another_version(ready, pod, colour="red")
    await start_again(ready)
    assert has_hook(await ready.kubelet.start_container(pod, "main"))
    assert json.loads(record.read_text())["colour"] == "red"
    assert await ready.allocations() == before


async def test_of_a_record_that_cannot_be_read_the_library_stays_and_is_the_one_of_the_record_made_anew(
    ready: Node,
) -> None:
    pod = Pod("trainer", {"main": 30})
    await ready.kubelet.run(pod)
    before = await ready.allocations()
    await ready.stop_plugin(signal.SIGTERM)
    by_another_version(ready, pod, unit_ids={"of": "another kind"})
    await start_again(ready)
    await ready.until_said("was lost: made anew")
    assert has_hook(await ready.kubelet.start_container(pod, "main"))
    assert await ready.allocations() == before


@pytest.mark.parametrize("told", [True, False], ids=["told which", "of an older version"])
async def test_a_container_whose_library_is_gone_with_its_record_does_not_start(ready: Node, told: bool) -> None:
    pod = Pod("trainer", {"main": 30})
    await ready.kubelet.run(pod)
    await ready.stop_plugin(signal.SIGTERM)
    by_another_version(ready, pod)
    if not told:
        (mounted(ready.kubelet.answers[pod.uid, "main"])["edgeshare"] / "library").unlink()
    shutil.rmtree(ready.state_dir)
    await start_again(ready)
    await ready.until_said("was lost: made anew")
    with pytest.raises(StartError, match=r"hook library .* was set up with is (gone|not known) .*make the pod anew"):
        await ready.kubelet.start_container(pod, "main")


async def test_a_library_that_containers_may_have_stays_until_the_kubelet_has_said_which_there_are(ready: Node) -> None:
    pod = Pod("trainer", {"main": 30})
    await ready.kubelet.run(pod)
    await ready.stop_plugin(signal.SIGTERM)
    library, _ = by_another_version(ready, pod)
    unused = library.parents[1] / ("0" * HASH_LENGTH)
    unused.mkdir()
    shutil.rmtree(ready.state_dir / "deviceplugin")
    ready.kubelet.may_list.clear()
    await ready.start_plugin()
    await ready.kubelet.until(registrations=2, healthy=200)
    await ready.until_said("allocations not compared")
    assert unused.exists()
    ready.kubelet.may_list.set()
    await ready.until_said(f"removed the hook library {unused.name}")
    assert has_hook(await ready.kubelet.start_container(pod, "main"))
