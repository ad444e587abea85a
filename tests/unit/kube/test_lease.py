"""What is said while the API server that has a Lease is away. How replicas take and lose it is shown in
tests/assigner."""

import asyncio
import logging
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from kubernetes.leaderelection import leaderelection

from edgeshare.kube import client_library
from edgeshare.kube.client_library import Candidate, LeaseTimes
from tests.kit.apiserver.answering_server import HANG_UP, SAFETY_S, Server, answer
from tests.kit.apiserver.kubeconfig import kubeconfig

AWAY = [answer({"message": "away"}, 503), HANG_UP, answer(b"<html>", 500), answer({"message": "slow"}, 504)]
NOT_OURS = answer({"message": "not yours"}, 403)
TIME = "2026-01-01T00:00:00.000000Z"
ANOTHERS = answer(
    {
        "metadata": {"name": "lease"},
        "spec": {"holderIdentity": "another", "leaseDurationSeconds": 15, "acquireTime": TIME, "renewTime": TIME},
    }
)


async def test_that_it_is_not_reached_is_said_once_and_again_when_it_is_back(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    # Between two attempts no time passes.
    monkeypatch.setattr(leaderelection, "time", SimpleNamespace(time=time.time, sleep=lambda _: None))
    server.answers = [*AWAY, NOT_OURS, *AWAY, NOT_OURS, ANOTHERS, *AWAY, ANOTHERS, ANOTHERS]
    holders: list[str] = []
    reached = kubeconfig(tmp_path / "kubeconfig", {"server": server.url})
    times = LeaseTimes(lease_s=4 * SAFETY_S, renew_s=2 * SAFETY_S, retry_s=1)
    candidate = Candidate(reached, "ns", "lease", "us", times, renewed=lambda _: None, held_by=holders.append)
    candidate.start()
    async with asyncio.timeout(SAFETY_S):
        await server.silent.wait()
    said = [record.getMessage() for record in caplog.records if record.name == client_library.__name__]
    server.answers = [ANOTHERS]
    await asyncio.to_thread(candidate.give_back)
    assert holders == ["another"] * 3
    assert [line.partition(": ")[2][:3] for line in said] == ["503", "403", "", "503", ""]
    assert said[2] == said[4] == "the Lease is reached again"
