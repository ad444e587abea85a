"""The assigner that is measured: a process of its own."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import yaml

from edgeshare.contract.errors import Unavailable


@asynccontextmanager
async def assigning(
    folder: Path, api_url: str, certificate: Path, tls: Mapping[str, object] | None = None
) -> AsyncIterator[tuple[str, int]]:
    """The real one, as it is installed beside a kube-scheduler, without TLS where that is of its pod: its URL and its
    process."""
    kubeconfig = {
        "clusters": [{"name": "c", "cluster": {"server": api_url, "certificate-authority": str(certificate)}}],
        "users": [{"name": "u", "user": {"token": "a.service-account.token" * 40}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    config: dict[str, object] = {
        "address": "127.0.0.1:0",
        "choice": "filter",
        "kubeconfig": str(folder / "kubeconfig"),
        "tls": tls,
    }
    for name, content in (("kubeconfig", kubeconfig), ("assigner.yaml", config)):
        (folder / name).write_text(yaml.safe_dump(content))
    with (folder / "assigner.log").open("w") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "edgeshare.cli",
            "sharemgr",
            "cluster",
            f"--config={folder / 'assigner.yaml'}",
            stdout=subprocess.PIPE,
            stderr=log,
        )
    try:
        assert process.stdout is not None
        said = (await process.stdout.readline()).decode()
        if "ready, " not in said:
            raise Unavailable(f"the assigner does not start: {(folder / 'assigner.log').read_text()[-500:]}")
        yield said.rpartition(" ")[2].strip(), process.pid
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """The API server's, which signs for itself, and its key. Raises Unavailable."""
    certificate, key = folder / "api.crt", folder / "api.key"
    new = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    named = ["-subj", "/CN=kube-apiserver", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", *new, *named, "-out", str(certificate), "-keyout", str(key)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Unavailable(f"openssl makes no certificate: {error}") from error
    return certificate, key
