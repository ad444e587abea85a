"""Nodes and replicas for the tests of this folder."""

from pathlib import Path

import pytest

from tests.kit.apiserver.api_server import ApiServer
from tests.kit.assigner.world import World


@pytest.fixture
def world(server: ApiServer, tmp_path: Path, own_name: str) -> World:
    return World(server, tmp_path / "certificates", own_name[-40:].strip("-"))
