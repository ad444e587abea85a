"""What is said where gRPC says no more than UNAVAILABLE: by whom a share manager and the cluster's status are asked."""

import os
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import grpc
import pytest
import urllib3

from deviceplugin.allocations.manager_client import Manager
from edgeshare.cli.status.service import Service, asking
from edgeshare.client import ManagerClient
from edgeshare.contract.errors import InvalidRequest, Unavailable
from edgeshare.contract.names import ALLOCATIONS_SOCKET, MANAGERS_TLS_NAME, STATUS_SOCKET
from edgeshare.kube.kube import Kube
from edgeshare.tls_files import TlsFiles
from sharemgr.cluster.issuing.renewal import Name
from sharemgr.cluster.issuing.signing import Pair
from sharemgr.cluster.status.managers import Managers
from tests.kit.processes.rights import only_root

NOBODY = 65534
NO_ROOM = "clients/one cannot be made: No space left on device"
READING = "the cluster part is still reading which nodes there are"
NAME = "edgeshare-status.edge.svc"


def refusing(code: grpc.StatusCode, text: str) -> "grpc.RpcMethodHandler[bytes, bytes]":
    """A call that is answered so."""

    def refuse(_: bytes, context: grpc.ServicerContext) -> bytes:
        context.abort(code, text)

    return grpc.unary_unary_rpc_method_handler(refuse)


def once(over: threading.Event) -> "grpc.RpcMethodHandler[bytes, bytes]":
    """A call that is answered with one empty message, and goes on until it is over."""

    def answer(_: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        yield b""
        over.wait()

    return grpc.unary_stream_rpc_method_handler(answer)


@contextmanager
def server(status: grpc.StatusCode = grpc.StatusCode.UNAVAILABLE, text: str = NO_ROOM) -> Iterator[grpc.Server]:
    """One that says of each call why it cannot; it has no address yet. ``status`` and ``text``: what a manager says."""
    over, refused = threading.Event(), refusing(status, text)
    services = {
        "ShareStatus": {"GetNodeStatus": refused, "WatchShares": once(over)},
        "Allocations": {"ListAllocations": refused},
        "ClusterStatus": {"GetClusterStatus": refusing(grpc.StatusCode.UNAVAILABLE, READING)},
    }
    with futures.ThreadPoolExecutor(2) as threads:
        made = grpc.server(
            threads,
            handlers=[
                grpc.method_handlers_generic_handler(f"edgeshare.v1.{name}", of) for name, of in services.items()
            ],
        )
        try:
            yield made
        finally:
            over.set()
            made.stop(None).wait()


def refused(runtime_dir: Path) -> str:
    """What is said to who asks the manager of this folder for its status."""
    with ManagerClient(runtime_dir) as client, pytest.raises(Unavailable) as caught:
        client.status()
    return str(caught.value)


async def refused_the_plugin(runtime_dir: Path) -> str:
    """What is said to the device plugin."""
    with pytest.raises(Unavailable) as caught:
        await Manager(runtime_dir).list()
    return str(caught.value)


@contextmanager
def listening(path: Path, say: bytes) -> Iterator[None]:
    """Something else than a manager: it says this to whoever connects, and ends the connection."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def answer() -> None:
            while True:
                connection, _ = listener.accept()
                with connection:
                    if not connection.recv(1):
                        return
                    connection.sendall(say)

        thread = threading.Thread(target=answer)
        thread.start()
        yield
        # Whoever connects and says nothing ends it.
        with socket.socket(socket.AF_UNIX) as last:
            last.connect(str(path))
        thread.join()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that everybody may enter."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@contextmanager
def as_somebody_else() -> Iterator[None]:
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


async def test_where_nobody_listens_no_manager_answers(tmp_path: Path) -> None:
    said = refused(tmp_path)
    assert said.startswith(f"no share manager answers at {tmp_path / STATUS_SOCKET}: start one with ")
    for name in (STATUS_SOCKET, ALLOCATIONS_SOCKET):
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(tmp_path / name))
    assert refused(tmp_path) == said
    socket_path = tmp_path / ALLOCATIONS_SOCKET
    assert (
        await refused_the_plugin(tmp_path)
        == f"the node's share manager does not answer at {socket_path}: containers start as soon as it does"
    )


async def test_what_the_manager_says_itself_is_passed_on(tmp_path: Path) -> None:
    with server() as manager:
        for name in (STATUS_SOCKET, ALLOCATIONS_SOCKET):
            manager.add_insecure_port(f"unix:{tmp_path / name}")
        manager.start()
        said = refused(tmp_path)
        assert said.startswith(f"{tmp_path / STATUS_SOCKET} is listened on, but the call failed: {NO_ROOM}: try again")
        to_the_plugin = await refused_the_plugin(tmp_path)
    assert to_the_plugin == (
        f"the node's share manager at {tmp_path / ALLOCATIONS_SOCKET} cannot be asked: {NO_ROOM}: containers start as "
        "soon as it can"
    )


def test_a_call_that_is_broken_off_says_so_where_a_manager_is_there(tmp_path: Path) -> None:
    path = tmp_path / STATUS_SOCKET
    with server() as first, server() as second, ManagerClient(tmp_path) as client:
        for name, each in (("first", first), ("second", second)):
            each.add_insecure_port(f"unix:{tmp_path / name}")
            each.start()
        path.symlink_to("first")
        seen = client.watch(1)
        next(seen)
        path.unlink()
        path.symlink_to("second")
        first.stop(None)
        with pytest.raises(Unavailable, match=f"{path} is listened on, but the call failed: .+: try again"):
            next(seen)


def test_something_else_that_listens_is_no_manager_that_is_away(tmp_path: Path) -> None:
    with listening(tmp_path / STATUS_SOCKET, b"HTTP/1.1 400 Bad Request\r\n\r\n"):
        said = refused(tmp_path)
    assert said.startswith(f"{tmp_path / STATUS_SOCKET} is listened on, but the call failed: failed to connect")
    assert said.endswith("or name another --runtime-dir")


def test_what_is_in_the_way_of_a_connection_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = refused(tmp_path / "file")
    path = tmp_path / "file" / STATUS_SOCKET
    assert said == f"{path} cannot be connected to: Not a directory: name another --runtime-dir"


@only_root
def test_a_socket_of_other_users_is_named_as_theirs(open_folder: Path) -> None:
    path = open_folder / STATUS_SOCKET
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        path.chmod(0o600)
        with as_somebody_else():
            said = refused(open_folder)
    assert said == f"{path} is open to root and the manager's own user only: run this as one of them"


@only_root
def test_a_folder_that_may_not_be_entered_is_no_traceback(open_folder: Path) -> None:
    (open_folder / "run").mkdir(mode=0o700)
    with as_somebody_else():
        said = refused(open_folder / "run")
    assert said.startswith(f"{open_folder / 'run' / STATUS_SOCKET} is open to root and the manager's own user only")


def test_a_folder_in_which_no_socket_has_a_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"longer than the 107 bytes .*: name a shorter --runtime-dir"):
        ManagerClient(tmp_path / ("long" * 25))


@pytest.fixture
def authority() -> Pair:
    return Pair.authority(datetime.now(UTC), None)


Told = Callable[..., str]


@pytest.fixture
def told(authority: Pair, tmp_path: Path) -> Iterator[Told]:
    """What is said to who asks a service of the cluster's status that cannot tell."""
    (tmp_path / "ca.crt").write_bytes(authority.certificate_pem)
    leaf = authority.issue(Name.STATUS_SERVER, [NAME], datetime.now(UTC), 1)
    kube = Kube("", urllib3.PoolManager(), lambda: "Bearer x")
    with ExitStack() as stack:
        made = stack.enter_context(server())
        own = grpc.ssl_server_credentials([(leaf.key_pem, leaf.certificate_pem)])
        served = made.add_secure_port("127.0.0.1:0", own)
        made.start()

        def ask(*, port: int = served, name: str = NAME, authority: Pair | None = None) -> str:
            if authority is not None:
                (tmp_path / "ca.crt").write_bytes(authority.certificate_pem)
            service = Service(f"127.0.0.1:{port}", tmp_path / "ca.crt", name, "")
            with asking(service, kube) as look, pytest.raises(Unavailable) as caught:
                look()
            return str(caught.value).removeprefix(f"--cluster-status 127.0.0.1:{port}: ")

        yield ask


FITS = "do --cluster-status-ca and -name fit its certificate?"
THERE = "is it there, or the port-forward to it?"


def test_what_the_service_says_itself_is_asked_of_no_certificate(told: Told) -> None:
    assert told() == f"it was reached, and does not tell now: {READING}"


def test_a_service_that_is_not_there_is_asked_of_no_certificate(told: Told) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    said = told(port=port)
    assert "Connection refused" in said
    assert said.endswith(THERE)
    assert FITS not in said


def test_a_certificate_that_does_not_fit_is_that_of_who_is_there(told: Told) -> None:
    for said in (told(name="other.edge.svc"), told(authority=Pair.authority(datetime.now(UTC), None))):
        assert said.endswith(FITS)
        assert THERE not in said


async def test_a_manager_that_refuses_has_answered(authority: Pair, tmp_path: Path) -> None:
    """To the cluster part, which asks it over TLS."""

    now = datetime.now(UTC)
    leaf, own = (
        authority.issue(Name.MANAGER, [MANAGERS_TLS_NAME], now, 1),
        authority.issue(Name.STATUS_CLIENT, [], now, 1),
    )
    for name, content in (("crt", own.certificate_pem), ("key", own.key_pem), ("ca", authority.certificate_pem)):
        (tmp_path / name).write_bytes(content)
    with server(grpc.StatusCode.PERMISSION_DENIED, "let in are somebody-else") as manager:
        shown = grpc.ssl_server_credentials([(leaf.key_pem, leaf.certificate_pem)])
        port = manager.add_secure_port("127.0.0.1:0", shown)
        manager.start()
        files = TlsFiles(certificate=tmp_path / "crt", private_key=tmp_path / "key", authority=tmp_path / "ca")
        addresses = {"closed": (f"127.0.0.1:{port}",), "gone": ("127.0.0.1:9",)}
        asked = Managers(files, addresses.__getitem__)
        errors = {name: told.error for name, told in (await asked.ask(addresses)).items()}
        await asked.close()
    assert errors["closed"] == (
        f"its share manager tells no status at 127.0.0.1:{port}: PERMISSION_DENIED let in are somebody-else"
    )
    assert errors["gone"].startswith("its share manager does not answer at 127.0.0.1:9: UNAVAILABLE ")
