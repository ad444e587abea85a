"""Who is told over TCP who has what on a node, and who is not: a real manager on a simulated machine, and real
handshakes."""

import socket
from contextlib import suppress
from pathlib import Path

import grpc
import pytest
import yaml

from edgeshare.v1.allocations_pb2 import Allocation
from edgeshare.v1.status_pb2 import GetNodeStatusRequest, NodeStatus, WatchSharesRequest, WatchTurnsRequest
from edgeshare.v1.status_pb2_grpc import ShareStatusStub
from tests.kit.apiserver.certificates import Authority
from tests.kit.manager.testbed import Manager, Testbed
from tests.kit.processes.waiting import PATIENCE_S

ASKER = "edgeshare-status"
NODES = "edgeshare-nodes"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Who signs for managers and for who may ask them."""
    return Authority(tmp_path_factory.mktemp("authority"))


class Remote:
    """A manager that is asked over TCP."""

    def __init__(self, testbed: Testbed, authority: Authority) -> None:
        self._authority = authority
        self.folder = testbed.root / "secret"
        self.folder.mkdir()
        self.put(authority, NODES)
        files = {"certificate": "tls.crt", "private_key": "tls.key", "authority": "ca.crt"}
        paths = {key: str(self.folder / name) for key, name in files.items()}
        config = {"remote_status": {"address": "127.0.0.1:0", **paths, "clients": [ASKER]}}
        self.manager: Manager = testbed.manager(yaml.safe_dump(config))
        line = next(line for line in self.manager.log().splitlines() if "over TLS" in line)
        self.address = line.partition("status at ")[2].partition(",")[0]

    def put(self, authority: Authority, name: str) -> None:
        certificate, key = authority.issue(name, name, hosts=(f"DNS:{NODES}",))
        for source, target in ((certificate, "tls.crt"), (key, "tls.key"), (self._authority.certificate, "ca.crt")):
            (self.folder / f".{target}").write_bytes(source.read_bytes())
            (self.folder / f".{target}").replace(self.folder / target)

    def channel(self, own: tuple[Path, Path] | None, trusts: Authority | None = None) -> grpc.Channel:
        certificate, key = (None, None) if own is None else (path.read_bytes() for path in own)
        root = (trusts or self._authority).certificate.read_bytes()
        options = (("grpc.ssl_target_name_override", NODES),)
        return grpc.secure_channel(self.address, grpc.ssl_channel_credentials(root, key, certificate), options)

    def ask(self, own: tuple[Path, Path] | None) -> NodeStatus:
        with self.channel(own) as channel:
            return ShareStatusStub(channel).GetNodeStatus(GetNodeStatusRequest(), timeout=PATIENCE_S)


@pytest.fixture
def remote(testbed: Testbed, authority: Authority) -> Remote:
    return Remote(testbed, authority)


def refusal(remote: Remote, own: tuple[Path, Path] | None) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as told:
        remote.ask(own)
    return told.value.code(), told.value.details()


def test_who_is_named_is_told_what_the_socket_tells(remote: Remote, testbed: Testbed, authority: Authority) -> None:
    asked = Allocation(id="a", device_ids=[testbed.uuids[0]], request_percent=30, memory_mib=1000)
    with testbed.calls() as calls:
        held = calls.hold(asked, wait_for_manager=False)
        next(held)
        told = remote.ask(authority.issue("asker", ASKER))
        assert [each.allocation for each in told.allocations] == [
            each.allocation for each in testbed.status().allocations
        ]
        assert [(each.id, each.allocated_percent) for each in told.devices] == [
            (testbed.uuids[0], 30),
            (testbed.uuids[1], 0),
        ]


def test_who_has_another_name_is_told_which_ones_are_let_in(remote: Remote, authority: Authority) -> None:
    code, why = refusal(remote, authority.issue("scheduler", "system:kube-scheduler"))
    assert code is grpc.StatusCode.PERMISSION_DENIED
    assert why == (
        f"the client's certificate names 'system:kube-scheduler': let in are {ASKER} (remote_status.clients)"
    )


def test_who_shows_no_certificate_or_another_authoritys_gets_no_answer(
    remote: Remote, authority: Authority, tmp_path: Path
) -> None:
    assert refusal(remote, None)[0] is grpc.StatusCode.UNAVAILABLE
    other = Authority(tmp_path / "other")
    assert refusal(remote, other.issue("asker", ASKER))[0] is grpc.StatusCode.UNAVAILABLE
    # Who may is told all the same.
    assert len(remote.ask(authority.issue("asker", ASKER)).devices) == 2


def test_nothing_but_the_status_is_there(remote: Remote, authority: Authority) -> None:
    with remote.channel(authority.issue("asker", ASKER)) as channel:
        stub = ShareStatusStub(channel)
        for stream in (stub.WatchShares(WatchSharesRequest()), stub.WatchTurns(WatchTurnsRequest())):
            with pytest.raises(grpc.RpcError) as told:
                next(stream)
            assert told.value.code() is grpc.StatusCode.UNIMPLEMENTED
        allocate = channel.unary_unary("/edgeshare.v1.Allocations/ListAllocations")
        with pytest.raises(grpc.RpcError) as told:
            allocate(b"", timeout=PATIENCE_S)
        assert told.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_noise_and_what_is_too_large_cost_nobody_else_anything(remote: Remote, authority: Authority) -> None:
    host, _, port = remote.address.rpartition(":")
    with socket.create_connection((host, int(port)), PATIENCE_S) as noisy:
        noisy.sendall(b"GET / HTTP/1.1\r\n\r\n" * 100)
        # It is hung up on: an alert of TLS comes, and then nothing more.
        try:
            while noisy.recv(4096):
                pass
        except ConnectionResetError:
            pass
    with remote.channel(authority.issue("asker", ASKER)) as channel:
        raw = channel.unary_unary("/edgeshare.v1.ShareStatus/GetNodeStatus")
        for body, code in (
            (b"\0" * (64 << 10), grpc.StatusCode.RESOURCE_EXHAUSTED),
            (b"\xff", grpc.StatusCode.UNKNOWN),
        ):
            with pytest.raises(grpc.RpcError) as told:
                raw(body, timeout=PATIENCE_S)
            assert told.value.code() is code
        assert len(ShareStatusStub(channel).GetNodeStatus(GetNodeStatusRequest(), timeout=PATIENCE_S).devices) == 2


def test_those_that_say_nothing_are_sent_away(remote: Remote, authority: Authority) -> None:
    host, _, port = remote.address.rpartition(":")
    # As many as there may be at a time, and some more.
    silent = [socket.create_connection((host, int(port)), PATIENCE_S) for _ in range(80)]
    try:
        for each in silent:
            each.settimeout(PATIENCE_S)
            assert each.recv(1) == b""
        assert len(remote.ask(authority.issue("asker", ASKER)).devices) == 2
    finally:
        for each in silent:
            each.close()


def test_a_renewed_certificate_is_shown_without_a_restart(remote: Remote, authority: Authority, tmp_path: Path) -> None:
    asker = authority.issue("asker", ASKER)
    assert len(remote.ask(asker).devices) == 2
    renewed = Authority(tmp_path / "renewed")
    remote.put(renewed, "renewed")
    told = None
    while told is None:
        # Files are looked at once a second, at a handshake: of who trusts the new one alone, one gets through at last.
        with remote.channel(asker, renewed) as channel, suppress(grpc.RpcError):
            told = ShareStatusStub(channel).GetNodeStatus(GetNodeStatusRequest(), timeout=PATIENCE_S)
    assert len(told.devices) == 2
    assert "new certificates hold" in remote.manager.log()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"clients": []}, "remote_status.clients: "),
        ({"private_key": None}, "remote_status.private_key: "),
        ({"authority": None}, "remote_status.authority: "),
        ({"address": "nowhere"}, "remote_status.address: "),
        ({"certificate": "/nowhere/tls.crt"}, "/nowhere/tls.crt: cannot be read: No such file or directory"),
        (
            {"user": "x"},
            "unknown key 'remote_status.user': the keys are certificate, private_key, authority, address, ",
        ),
    ],
)
def test_what_cannot_be_listened_by_is_said_in_a_line(
    change: dict[str, object], said: str, testbed: Testbed, authority: Authority
) -> None:
    certificate, key = authority.issue(NODES, NODES)
    good: dict[str, object] = {
        **{"address": "127.0.0.1:0", "clients": [ASKER], "certificate": str(certificate)},
        **{"private_key": str(key), "authority": str(authority.certificate)},
    }
    result = testbed.edgeshare(*testbed.manager_arguments(yaml.safe_dump({"remote_status": {**good, **change}})))
    assert result.returncode != 0
    assert said in result.stderr
    assert "Traceback" not in result.stderr
