"""What a pod needs to reach the API server. That it does is shown on a real one, in tests/cluster."""

from pathlib import Path

import pytest

from edgeshare.errors import Unavailable
from edgeshare.kube import Kube

ADDRESS = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"}


@pytest.fixture
def account(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("a.b.c\n")
    (tmp_path / "ca.crt").write_text("no certificate")
    return tmp_path


@pytest.mark.parametrize("missing", ["token", "ca.crt"])
def test_a_pod_without_a_service_account_is_told_so(account: Path, missing: str) -> None:
    (account / missing).unlink()
    with pytest.raises(Unavailable, match="mount its token"):
        Kube.in_cluster(ADDRESS, account)


def test_a_process_in_no_pod_is_told_so(account: Path) -> None:
    with pytest.raises(Unavailable, match="no service account"):
        Kube.in_cluster({}, account)


@pytest.mark.parametrize("token", [b"", b"a\r\nHost: elsewhere", b"\xff\xfe"])
def test_what_is_no_token_is_never_sent(account: Path, token: bytes) -> None:
    kube = Kube.in_cluster(ADDRESS, account)
    (account / "token").write_bytes(token)
    with pytest.raises(Unavailable, match="token"):
        kube.node("n1")


def test_a_certificate_authority_that_is_none_is_said(account: Path) -> None:
    with pytest.raises(Unavailable, match="API server cannot be asked"):
        Kube.in_cluster(ADDRESS, account).node("n1")
