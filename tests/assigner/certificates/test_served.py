"""The assigner as users start it, with what the command made: who is let in, and that a renewed certificate is served
without a restart."""

import json
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from edgeshare.cli import cli
from edgeshare.contract.errors import EdgeshareError
from sharemgr.cluster.issuing.issuing import issue
from sharemgr.cluster.issuing.key_folder import KeyFolder
from sharemgr.cluster.issuing.renewal import for_assigner
from tests.kit.apiserver.api_server import ApiServer
from tests.kit.assigner.connection import Connection
from tests.kit.assigner.replicas import ASKED, Replica, Replicas

DAYS = 360
DAY_S = 86_400
FILTERED = json.dumps(ASKED).encode()


def made(folder: Path, age_days: float = 0) -> None:
    """Certificates for loopback, so many days old."""
    place = KeyFolder(folder)
    with place.held():
        list(issue(place, for_assigner(frozenset({"127.0.0.1"})), datetime.now(UTC) - timedelta(days=age_days), DAYS))


def context(folder: Path, client: Path | None) -> ssl.SSLContext:
    """Of one that trusts the authority of a folder, with kube-scheduler's certificate of another one, if any."""
    context = ssl.create_default_context(cafile=folder / "ca.crt")
    if client is not None:
        context.load_cert_chain(client / "scheduler.crt", client / "scheduler.key")
    return context


async def serving(replicas: Replicas, server: ApiServer, folder: Path) -> Replica:
    names = {"certificate": "tls.crt", "private_key": "tls.key", "client_authority": "ca.crt"}
    tls = {key: str(folder / name) for key, name in names.items()}
    replica = await replicas.start_command(
        kubeconfig=str(server.kubeconfig), tls={**tls, "clients": ["system:kube-scheduler"]}
    )
    await replica.until_ready()
    return replica


async def test_kube_scheduler_is_answered_and_nobody_without_its_certificate(
    replicas: Replicas, server: ApiServer, tmp_path: Path
) -> None:
    made(tmp_path / "ours")
    made(tmp_path / "theirs")
    url = await (await serving(replicas, server, tmp_path / "ours")).url()
    with Connection(url, context(tmp_path / "ours", tmp_path / "ours")) as scheduler:
        status, answer = await scheduler.ask("/filter", FILTERED)
        assert (status, "n1" in answer) == (200, True)
    for client in (None, tmp_path / "theirs"):
        other = Connection(url, context(tmp_path / "ours", client))
        with other, pytest.raises((ssl.SSLError, ConnectionError)):
            await other.ask("/filter", FILTERED)


async def test_renewed_certificates_are_served_without_a_restart_and_no_call_is_lost(
    replicas: Replicas, server: ApiServer, tmp_path: Path
) -> None:
    folder = tmp_path / "ours"
    made(folder, age_days=300)
    before = context(folder, folder)
    replica = await serving(replicas, server, folder)
    url = await replica.url()
    with Connection(url, before) as kept:
        assert (await kept.ask("/filter", FILTERED))[0] == 200
        old = kept.certificate
        ends = await certificate_ends(replica)
        assert set(ends) == {"assigner", "client"}
        words = ("sharemgr", "certificates", "--folder", str(folder), "--host", "127.0.0.1")
        told = CliRunner().invoke(cli, words, catch_exceptions=False).output.splitlines()
        assert [line.partition(": ")[2].partition(",")[0] for line in told] == ["kept", "renewed", "renewed"]
        await replica.said("new certificates hold")
        # What was connected stays so, and who comes with the certificate of before is let in as well.
        assert (await kept.ask("/filter", FILTERED))[0] == 200
        for each in (before, context(folder, folder)):
            with Connection(url, each) as after:
                assert (await after.ask("/filter", FILTERED))[0] == 200
                assert after.certificate != old
    renewed = await certificate_ends(replica)
    assert all(300 * DAY_S < renewed[whose] - ends[whose] < 310 * DAY_S for whose in ends)


async def certificate_ends(replica: Replica) -> dict[str, float]:
    """When they hold no more, by whose they are, as its metrics tell."""
    _, text = await replica.page("metrics")
    families = {each.name: each.samples for each in text_string_to_metric_families(text)}
    return {each.labels["of"]: each.value for each in families["edgeshare_assigner_certificate_end_timestamp_seconds"]}


def test_a_folder_of_somebody_else_is_left_by_the_command(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("the cluster's")
    (tmp_path / "ca.key").write_text("the cluster's")
    (tmp_path / "ca.key").chmod(0o600)
    result = CliRunner().invoke(cli, ["sharemgr", "certificates", "--folder", str(tmp_path)])
    assert isinstance(result.exception, EdgeshareError)
    assert str(result.exception).startswith(f"{tmp_path}/ca.crt: is no certificate in PEM")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == dict.fromkeys(
        ("ca.crt", "ca.key"), "the cluster's"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "choose one of --folder and --apply"),
        (("--folder", "f", "--apply"), "choose one of --folder and --apply"),
        (("--folder", "f", "--days", "0"), "0 is not in the range 1<=x<=1825"),
        (("--folder", "f", "--days", "1826"), "1826 is not in the range 1<=x<=1825"),
        (("--folder", "f", "--host", "a_b"), "'a_b' is no DNS name and no IP address"),
        (("--folder", "f", "--service", "a.b"), "'a.b' is no name of a Service"),
        (("--folder", "f", "--namespace", "../x"), "'../x' is no name of a namespace"),
        (("--apply", "--secret", "a/../b"), "'a/../b' is no name of a Secret"),
        (("--apply", "--kubeconfig", "none"), "none: cannot be used as a kubeconfig: there is no such file"),
    ],
)
def test_what_cannot_be_asked_for_is_said(
    words: tuple[str, ...], said: str, server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig))
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["sharemgr", "certificates", *words])
    assert result.exit_code != 0
    assert said in (result.output if result.exit_code == 2 else str(result.exception))
    assert not list(tmp_path.iterdir())
