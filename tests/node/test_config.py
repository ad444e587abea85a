"""The manager's configuration file."""

from pathlib import Path

import pytest

from edgeshare.config_file import read_config
from edgeshare.contract.errors import InvalidRequest
from sharemgr.node.config import Config


def read(tmp_path: Path, text: str) -> Config:
    path = tmp_path / "manager.yaml"
    path.write_text(text)
    return read_config(path, Config)


def test_no_file_and_an_empty_file_are_the_defaults(tmp_path: Path) -> None:
    assert read_config(None, Config) == Config() == read(tmp_path, "") == read(tmp_path, "# nothing\n")


def test_values_are_read_in_the_units_that_their_keys_end_with(tmp_path: Path) -> None:
    config = read(tmp_path, "slice_ms: 2.5\nwindow_s: 4\nqueue_cap_us: 700\nanticipation_us: 0\ngrace_s: 1\n")
    assert config.slice_ns == 2_500_000
    assert config.window_ns == 4_000_000_000
    assert config.queue_cap_ns == 700_000
    assert config.anticipation_ns == 0
    assert config.grace_ms == 1_000


@pytest.mark.parametrize("address", ["", ":9464", "127.0.0.1:0", "[::1]:9464", "node-1.example:80"])
def test_an_address_for_metrics_is_taken(tmp_path: Path, address: str) -> None:
    assert read(tmp_path, f'metrics_address: "{address}"\n').metrics_address == address


def test_a_kubeconfig_is_a_path(tmp_path: Path) -> None:
    assert read(tmp_path, "kubeconfig: /etc/kube\nnode_name: n1\n").kubeconfig == Path("/etc/kube")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("slise_ms: 5\n", "unknown key 'slise_ms': the keys are slice_ms, window_s"),
        ("1: 5\n", "unknown key '1'"),
        ("slice_ms: 0\n", "slice_ms: Input should be greater than or equal to 0.5, found 0"),
        ("slice_ms: five\n", "slice_ms: Input should be a valid number, found 'five'"),
        ("queue_cap_us: 1.5\n", "queue_cap_us: "),
        ("kappa: 0.5\n", "kappa: Input should be greater than or equal to 1, found 0.5"),
        ("kappa: 100\n", "kappa: Input should be less than or equal to 99, found 100"),
        ("failure_policy: maybe\n", "failure_policy: Input should be 'open' or 'closed', found 'maybe'"),
        ("default_limit: 100\n", "default_limit: "),
        ("metrics_address: 9464\n", "metrics_address: "),
        ("metrics_address: 127.0.0.1\n", "metrics_address: "),
        ("wait_for_driver: 1\n", "wait_for_driver: "),
        ("- slice_ms\n", "expected lines of the form 'key: value', found a list"),
        ("slice_ms: [\n", "is not YAML"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line_that_names_it(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read(tmp_path, text)
    message = str(caught.value)
    assert str(tmp_path / "manager.yaml") in message
    assert said in message
    assert "\n" not in message


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"absent\.yaml: cannot be read: No such file"):
        read_config(tmp_path / "absent.yaml", Config)
