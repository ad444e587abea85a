"""What a node says of its memory, kept right whatever somebody else wrote there."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deviceplugin.cluster.node import Node
from edgeshare.contract.devices import Device
from edgeshare.contract.names import GPU_MEMORY_MIB
from edgeshare.kube.kube import Kube
from tests.kit.apiserver.scripted_api_server import ApiServer
from tests.kit.apiserver.serving import serving

GPU = Device("GPU-1", 0, "Tesla T4", 15360)


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ApiServer]:
    with serving(tmp_path) as (api, _):
        yield api


@pytest.mark.parametrize("found", ["500m", "much", ""])
async def test_a_value_that_is_no_number_is_written_over(api: ApiServer, tmp_path: Path, found: str) -> None:
    status: dict[str, Any] = {field: {GPU_MEMORY_MIB: found} for field in ("capacity", "allocatable")}
    api.nodes["n1"] = {"metadata": {"name": "n1", "uid": "1"}, "status": status}
    await Node(Kube.from_kubeconfig(tmp_path / "kubeconfig"), "n1").tell_memory([GPU])
    assert api.nodes["n1"]["status"]["capacity"][GPU_MEMORY_MIB] == "15360"
    assert api.nodes["n1"]["status"]["allocatable"][GPU_MEMORY_MIB] == "15360"
