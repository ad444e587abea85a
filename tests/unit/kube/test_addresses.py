"""What names an address is parsed by one rule, whatever part it belongs to."""

from pathlib import Path

import pytest
from pydantic import BaseModel

from deviceplugin.config import Config as PluginConfig
from edgeshare.config_file import read_config
from edgeshare.contract.address import join_address, parse_address
from edgeshare.contract.errors import InvalidRequest
from labeller.config import Config as LabellerConfig
from sharemgr.cluster.config import Config as AssignerConfig
from sharemgr.node.config import Config as ManagerConfig

GOOD = {
    "localhost:1": ("localhost", 1),
    "127.0.0.1:65535": ("127.0.0.1", 65535),
    ":0": ("", 0),
    "[::1]:80": ("::1", 80),
    "[::ffff:10.0.0.1]:80": ("::ffff:10.0.0.1", 80),
}
BAD = (
    "1",
    "a",
    "a:",
    "a:b",
    "::1:80",
    "[::1]",
    "[::g]:80",
    "[a]:80",
    "a b:1",
    "a:65536",
    "a:-1",
    "a/b:1",
    "a:1\n",
    "a:1:2",
)
PARTS = (PluginConfig, ManagerConfig, LabellerConfig, AssignerConfig)


@pytest.mark.parametrize("text", GOOD)
def test_an_address_is_its_host_and_its_port(text: str) -> None:
    assert parse_address(text) == GOOD[text]
    assert join_address(*parse_address(text)) == text


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__module__)
@pytest.mark.parametrize("text", BAD)
def test_what_is_none_is_refused_by_each_part_in_a_line(tmp_path: Path, part: type[BaseModel], text: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(f"metrics_address: {text!r}" if "\n" not in text else 'metrics_address: "a:1\\n"')
    with pytest.raises(InvalidRequest, match="metrics_address: ") as raised:
        read_config(file, part)
    assert "\n" not in str(raised.value)


def test_where_a_service_is_told_the_port_it_is_chosen(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("address: ':0'\nservice: {namespace: a, name: b}")
    with pytest.raises(InvalidRequest, match="the service is told the port"):
        read_config(file, AssignerConfig)
    file.write_text("address: ':0'")
    assert read_config(file, AssignerConfig).port == 0
