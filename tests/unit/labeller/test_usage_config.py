"""What can be set of watching accelerators, and what is refused."""

from pathlib import Path

import pytest

from edgeshare.config_file import read_config
from edgeshare.contract.errors import InvalidRequest
from labeller.config import Config

REFUSED = {
    "usage: {interval: 5}": "unknown key 'usage.interval': the keys are interval_s, tegrastats",
    "usage: {interval_s: 0.1}": "usage.interval_s: Input should be greater than or equal to 0.5, found 0.1",
    "usage: {tegrastats: tegrastats}": "usage.tegrastats: Value error, has to be an absolute path",
    'usage: {tegrastats: "/usr/bin/\\0"}': "is not YAML: line 1 has what no path and no name can have",
    'kubeconfig: "\\ud800"': "is not YAML: line 1 has what no path and no name can have",
    "metrics_address: 9417": "metrics_address: Input should be a valid string",
    "metrics_address: localhost": "metrics_address: Value error, has to be host:port",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_wrong_is_said_with_its_key(text: str, tmp_path: Path) -> None:
    (tmp_path / "labeller.yaml").write_text(text)
    with pytest.raises(InvalidRequest) as caught:
        read_config(tmp_path / "labeller.yaml", Config)
    assert REFUSED[text] in str(caught.value)


def test_two_slashes_begin_the_same_path_as_one(tmp_path: Path) -> None:
    (tmp_path / "labeller.yaml").write_text("usage: {tegrastats: //opt/bin/tegrastats}")
    assert str(read_config(tmp_path / "labeller.yaml", Config).usage.tegrastats) == "/opt/bin/tegrastats"


def test_what_is_set_holds(tmp_path: Path) -> None:
    (tmp_path / "labeller.yaml").write_text(
        "metrics_address: ':9100'\nusage: {interval_s: 30, tegrastats: /opt/bin/tegrastats}"
    )
    config = read_config(tmp_path / "labeller.yaml", Config)
    assert (config.metrics_address, config.usage.interval_s) == (":9100", 30)
    assert str(config.usage.tegrastats) == "/opt/bin/tegrastats"
