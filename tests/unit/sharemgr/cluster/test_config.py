"""The assigner's configuration file: what it may say, and what is said of what it may not."""

from pathlib import Path

import pytest

from edgeshare.config_file import read_config
from edgeshare.contract.errors import InvalidRequest
from sharemgr.cluster.config import Choice, Config
from sharemgr.cluster.placement.policies import DEFAULT

ALL = """
address: "[::1]:9443"
metrics_address: 127.0.0.1:9444
policy: fgd
choice: filter
bind_timeout_s: 2
kubeconfig: /etc/edgeshare/kubeconfig
tls:
  certificate: /tls/tls.crt
  private_key: /tls/tls.key
  client_authority: /tls/ca.crt
  clients: ["system:kube-scheduler"]
lease: {namespace: edgeshare, name: edgeshare-assigner}
"""


def read(tmp_path: Path, text: str) -> Config:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    return read_config(path, Config)


def test_every_key_is_taken_as_it_is_written(tmp_path: Path) -> None:
    config = read(tmp_path, ALL)
    assert (config.address, config.metrics_address) == ("[::1]:9443", "127.0.0.1:9444")
    assert (config.policy, config.choice, config.bind_timeout_s) == ("fgd", Choice.FILTER, 2)
    assert config.kubeconfig == Path("/etc/edgeshare/kubeconfig")
    assert config.tls is not None
    assert config.tls.files == (Path("/tls/tls.crt"), Path("/tls/tls.key"), Path("/tls/ca.crt"))
    assert config.tls.clients == ("system:kube-scheduler",)
    assert config.lease is not None
    assert (config.lease.namespace, config.lease.name) == ("edgeshare", "edgeshare-assigner")


def test_with_nothing_configured_one_replica_serves_plainly_with_the_default_policy() -> None:
    config = read_config(None, Config)
    assert (config.policy, config.choice) == (DEFAULT, Choice.SCORES)
    assert (config.tls, config.lease, config.kubeconfig, config.metrics_address) == (None, None, None, "")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("polcy: fgd", "unknown key 'polcy': the keys are address, "),
        ("policy: best", "policy: Value error, has to be one of usable, fgd, binpack, spread, aware, found 'best'"),
        ("choice: bind", "choice: Input should be 'scores' or 'filter'"),
        ("address: 9443", "address: "),
        ("address: ''", "address: Value error, has to be host:port"),
        ("address: ':99999'", "address: Value error, has to be host:port, or :port, with a port of at most 65535"),
        ("metrics_address: 'a b:1'", "metrics_address: Value error, has to be host:port"),
        ("bind_timeout_s: 5", "bind_timeout_s: "),
        ("bind_timeout_s: 0", "bind_timeout_s: "),
        ("tls: {certificate: /a}", "tls.private_key: Field required"),
        (
            "tls: {certificate: /a, private_key: /b, clients: [a]}",
            "tls: Value error, clients needs client_authority: without it no client shows a certificate",
        ),
        ("tls: {certificate: /a, private_key: /b, client_authority: /c, clients: ['']}", "tls.clients.0: "),
        ("tls: {certificate: /a, private_key: /b, key: /c}", "unknown key 'tls.key': the keys are certificate, "),
        ("lease: {namespace: Upper, name: a}", "lease.namespace: "),
        ("lease: {name: a}", "lease.namespace: Field required"),
    ],
)
def test_what_is_wrong_is_said_in_a_line_that_names_file_and_key(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(InvalidRequest) as told:
        read(tmp_path, text)
    assert str(told.value).startswith(f"{tmp_path}/config.yaml: {says}")
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("more", "openness"),
    [
        ("", "no tls is configured: whoever reaches :9443 may bind pods"),
        (
            "tls: {certificate: /a, private_key: /b}",
            "no tls.client_authority is configured: whoever reaches :9443 may bind pods",
        ),
        (
            "tls: {certificate: /a, private_key: /b, client_authority: /c}",
            "no tls.clients are configured: "
            "whoever /c signed for may bind pods, every kubelet where that is the cluster's",
        ),
        ("tls: {certificate: /a, private_key: /b, client_authority: /c, clients: [x]}", ""),
    ],
)
def test_who_else_may_have_pods_bound_is_told(tmp_path: Path, more: str, openness: str) -> None:
    assert read(tmp_path, f"policy: fgd\n{more}").openness == openness


@pytest.mark.parametrize("text", ["[" * 20_000, "a: " + "9" * 10_000, "when: 2026-99-99"])
def test_yaml_of_which_nothing_can_be_made_is_said_in_a_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(InvalidRequest) as refused:
        read_config(path, Config)
    assert "is not YAML" in str(refused.value)
    assert "\n" not in str(refused.value)
