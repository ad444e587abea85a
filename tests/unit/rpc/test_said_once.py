"""What a part says in the log of others that it asks again and again."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from deviceplugin.allocations.lifetimes import Lifetimes
from deviceplugin.allocations.manager_client import Manager
from edgeshare import tls_files
from edgeshare.tls_files import READ_AGAIN_S, Pems, TlsFiles
from sharemgr.cluster.issuing.renewal import Name
from sharemgr.cluster.issuing.signing import Pair


async def test_a_manager_that_is_away_is_said_once_of_those_that_it_may_have(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lifetimes = Lifetimes(None, None, Manager(tmp_path))
    for _ in range(3):
        assert await lifetimes.having_clients() == set()
    (said,) = caplog.messages
    assert said.startswith("taking allocations of pods that are over for unused: the node's share manager does not")


def test_certificates_that_cannot_be_read_are_said_once_however_often_somebody_connects(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 0.0
    monkeypatch.setattr(tls_files, "monotonic", lambda: now_s)
    pair = Pair.authority(datetime.now(UTC), None).issue(Name.MANAGER, ["managers"], datetime.now(UTC), 1)
    files = TlsFiles(certificate=tmp_path / "tls.crt", private_key=tmp_path / "tls.key")
    files.certificate.write_bytes(pair.certificate_pem)
    files.private_key.write_bytes(pair.key_pem)
    pems = Pems(files)
    held = pems.held
    files.private_key.unlink()
    for _ in range(3):
        now_s += READ_AGAIN_S
        assert pems.held == held
    (said,) = caplog.messages
    assert said == f"the certificates hold as they were: {files.private_key}: cannot be read: No such file or directory"
    files.private_key.write_bytes(pair.key_pem)
    now_s += READ_AGAIN_S
    assert pems.held == held
    files.private_key.unlink()
    now_s += READ_AGAIN_S
    assert pems.held == held
    assert caplog.messages == [said, said]
