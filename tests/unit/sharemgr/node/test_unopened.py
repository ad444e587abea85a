"""An allocation that cannot be opened leaves nothing behind in its manager."""

from pathlib import Path

import pytest

from edgeshare.contract.devices import Device
from edgeshare.contract.errors import InvalidRequest
from sharemgr.node.config import Config
from sharemgr.node.events import Events
from sharemgr.node.machine.allocations import Allocation
from sharemgr.node.machine.contexts import ContextSizes
from sharemgr.node.serving import Serving
from sharemgr.node.sockets.loop import Loop
from tests.kit.manager.siblings import open_siblings

GPU = Device("GPU-1", 0, "T4", 15360)


def test_it_leaves_no_descriptor_and_no_units(tmp_path: Path) -> None:
    # No socket's path is so long.
    deep = tmp_path / ("x" * 60) / ("y" * 60)
    loop = Loop()
    serving = Serving(Config(), (GPU,), deep, Events("", None), loop, ContextSizes())
    try:
        before = open_siblings()
        with pytest.raises(InvalidRequest, match="of a socket's path"):
            serving.open(Allocation("half", (GPU.id,), 50))
        assert open_siblings() == before
        assert serving.book.allocated_percent(GPU.id) == 0
        assert not serving.servers
    finally:
        serving.close()
        loop.close()
