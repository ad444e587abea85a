"""What a pod needs to reach the API server. That it does is shown on a real one, in tests/cluster."""

import socket
import threading
from pathlib import Path

import pytest
import urllib3

from edgeshare.contract.errors import Unavailable
from edgeshare.kube.kube import Kube

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


def test_a_server_that_breaks_off_or_sends_elsewhere_is_asked_once(account: Path) -> None:
    answers = iter([b"", b"HTTP/1.1 307 Elsewhere\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"])
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                connection, _ = server.accept()
                with connection:
                    line = connection.recv(65536).partition(b"\r\n")[0]
                    asked.append(line)
                    if not line:
                        return
                    connection.sendall(next(answers))

        serving = threading.Thread(target=serve)
        serving.start()
        host, port = server.getsockname()
        kube = Kube(f"http://{host}:{port}", urllib3.PoolManager(), lambda: None)
        for _ in range(2):
            with pytest.raises(Unavailable):
                kube.node("n1")
        socket.create_connection((host, port)).close()
        serving.join()
    assert asked == [b"GET /api/v1/nodes/n1? HTTP/1.1"] * 2 + [b""]


@pytest.mark.parametrize(
    "wrong", [{"HOST": "a b"}, {"HOST": "::g"}, {"PORT": "0"}, {"PORT": "65536"}, {"PORT": "https"}, {"HOST": "a/b"}]
)
def test_what_is_no_address_of_an_api_server_is_told_in_a_line(account: Path, wrong: dict[str, str]) -> None:
    environment = ADDRESS | {f"KUBERNETES_SERVICE_{name}": value for name, value in wrong.items()}
    with pytest.raises(Unavailable, match=r"are no address: .*: set none, or both$"):
        Kube.in_cluster(environment, account)
