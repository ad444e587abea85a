"""The probe tells a part that answers from one that hangs, is gone, or says itself that it cannot serve."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from edgeshare.kubelet.v1beta1 import deviceplugin_pb2, deviceplugin_pb2_grpc

PROBE = Path(__file__).parent.parent.parent / "deploy/chart/files/probe.py"
HEALTH = "/grpc.health.v1.Health/Check"
OPTIONS = "/v1beta1.DevicePlugin/GetDevicePluginOptions"


class Plugin(deviceplugin_pb2_grpc.DevicePluginServicer):
    """A device plugin that answers one question."""

    def GetDevicePluginOptions(  # noqa: N802
        self, request: deviceplugin_pb2.Empty, context: grpc.ServicerContext
    ) -> deviceplugin_pb2.DevicePluginOptions:
        return deviceplugin_pb2.DevicePluginOptions(pre_start_required=True)


@contextmanager
def serving(path: Path, status: health_pb2.HealthCheckResponse.ServingStatus) -> Iterator[None]:
    """A gRPC server at a Unix socket, whose health is `status`."""
    servicer = health.HealthServicer()
    servicer.set("", status)
    server = grpc.server(ThreadPoolExecutor(1))
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    deviceplugin_pb2_grpc.add_DevicePluginServicer_to_server(Plugin(), server)
    server.add_insecure_port(f"unix:{path}")
    server.start()
    try:
        yield
    finally:
        server.stop(0).wait()


def probe(method: str, folder: Path, pattern: str) -> tuple[int, str]:
    """The probe's exit status, and what it says."""
    done = subprocess.run([sys.executable, PROBE, method, folder, pattern], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr.strip()


def test_part_that_serves_is_healthy(tmp_path: Path) -> None:
    with serving(tmp_path / "status.sock", health_pb2.HealthCheckResponse.SERVING):
        assert probe(HEALTH, tmp_path, "status.sock") == (0, "")


def test_part_that_says_it_does_not_serve_is_not_healthy(tmp_path: Path) -> None:
    path = tmp_path / "status.sock"
    with serving(path, health_pb2.HealthCheckResponse.NOT_SERVING):
        assert probe(HEALTH, tmp_path, "status.sock") == (1, f"{path}: not serving")


def test_part_that_hangs_is_not_healthy(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as hanging:
        hanging.bind(str(tmp_path / "status.sock"))
        hanging.listen()
        status, said = probe(HEALTH, tmp_path, "status.sock")
    assert status == 1
    assert "status.sock: " in said


def test_part_that_is_gone_is_not_healthy(tmp_path: Path) -> None:
    assert probe(HEALTH, tmp_path, "status.sock") == (1, f"{tmp_path} has no status.sock")


def test_socket_that_a_plugin_left_behind_does_not_hide_a_healthy_one(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "edgeshare-1.sock"))
    assert probe(OPTIONS, tmp_path, "edgeshare-*.sock")[0] == 1
    with serving(tmp_path / "edgeshare-2.sock", health_pb2.HealthCheckResponse.NOT_SERVING):
        assert probe(OPTIONS, tmp_path, "edgeshare-*.sock") == (0, "")
