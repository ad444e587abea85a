"""What is measured, as a process of its own: the assigner, and other commands that ask an API server."""

import asyncio
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import yaml

from edgeshare.contract.errors import Unavailable
from tests.kit.apiserver.certificates import Authority
from tests.kit.apiserver.kubeconfig import kubeconfig
from tests.kit.processes.errors import NodeError


@asynccontextmanager
async def assigning(
    folder: Path, api_url: str, certificate: Path, tls: Mapping[str, object] | None = None
) -> AsyncIterator[tuple[str, int]]:
    """The real one, as it is installed beside a kube-scheduler, without TLS where that is of its pod: its URL and its
    process."""
    config: dict[str, object] = {
        "address": "127.0.0.1:0",
        "choice": "filter",
        "kubeconfig": str(write_kubeconfig(folder, api_url, certificate)),
        "tls": tls,
    }
    (folder / "assigner.yaml").write_text(yaml.safe_dump(config))
    words = ("sharemgr", "cluster", f"--config={folder / 'assigner.yaml'}")
    async with command(words, folder / "assigner.log", "ready, ") as (said, pid):
        yield said.rpartition(" ")[2], pid


@asynccontextmanager
async def command(words: Sequence[str], log: Path, says: str) -> AsyncIterator[tuple[str, int]]:
    """A command of ours that runs meanwhile: its first line, which has to have these words, and its process. Raises
    Unavailable."""
    with log.open("w") as errors:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "edgeshare.cli", *words), stdout=subprocess.PIPE, stderr=errors
        )
    try:
        assert process.stdout is not None
        said = (await process.stdout.readline()).decode().strip()
        if says not in said:
            raise Unavailable(f"edgeshare {words[0]} does not start: {(await asyncio.to_thread(log.read_text))[-500:]}")
        yield said, process.pid
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def write_kubeconfig(folder: Path, api_url: str, certificate: Path) -> Path:
    """The file by which the API server is reached, with a token as long as a service account's."""
    cluster = {"server": api_url, "certificate-authority": str(certificate)}
    return kubeconfig(folder / "kubeconfig", cluster, {"token": "a.service-account.token" * 40})


def api_tls(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """What a stand-in for the API server serves with, and the certificate that it is known by. Raises Unavailable."""
    try:
        authority = Authority(folder / "certificates")
        pair = authority.issue("api", "kube-apiserver", hosts=("IP:127.0.0.1",))
    except NodeError as error:
        raise Unavailable(f"openssl makes no certificate: {error}") from error
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(*pair)
    return serving, authority.certificate
