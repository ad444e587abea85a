"""The Secrets of a real API server: made, renewed, and left where they are somebody else's."""

import base64
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from edgeshare.cli import cli
from edgeshare.contract.errors import EdgeshareError, InvalidRequest, Unavailable
from edgeshare.kube.kube import MERGE_PATCH, Kube
from edgeshare.kube.messages import Conflicting, Refused
from sharemgr.cluster.issuing.issuing import issue
from sharemgr.cluster.issuing.kube_secrets import KubeSecrets
from sharemgr.cluster.issuing.renewal import Name, for_assigner
from tests.kit.apiserver.api_server import ApiServer, done
from tests.kit.deploy.objects import Object

NOW = datetime(2030, 6, 1, tzinfo=UTC)
DAYS = 360
HOSTS = frozenset({"edgeshare-assigner.default.svc"})
NOBODY = "system:serviceaccount:default:default"
SUFFIXES = ("-ca", "", "-scheduler")
SECRETS = "/api/v1/namespaces/default/secrets"


class Place:
    """The three Secrets of a test."""

    def __init__(self, server: ApiServer, name: str) -> None:
        self.server = server
        self.name = name

    def secrets(self) -> KubeSecrets:
        return KubeSecrets(Kube.from_kubeconfig(self.server.kubeconfig), "default", self.name)

    def run(self, after_days: float = 0) -> list[str]:
        """What a run so long after the first says of each."""
        told = list(issue(self.secrets(), for_assigner(HOSTS), NOW + timedelta(days=after_days), DAYS))
        assert [line.partition(": ")[0] for line in told] == [f"Secret default/{self.name}{each}" for each in SUFFIXES]
        return [re.sub(r".*: (\w+), until .*", r"\1", line) for line in told]

    def found(self) -> dict[str, Object]:
        """The Secrets that are there, by the ends of their names."""
        listed = self.server.ask("GET", SECRETS)
        named = {f"{self.name}{each}": each for each in SUFFIXES}
        objects = ((each["metadata"]["name"], each) for each in listed["items"])
        return {named[name]: each for name, each in objects if name in named}

    def versions(self) -> dict[str, str]:
        return {suffix: each["metadata"]["resourceVersion"] for suffix, each in self.found().items()}

    def patch(self, suffix: str, change: Object) -> None:
        self.server.ask("PATCH", f"{SECRETS}/{self.name}{suffix}", change, MERGE_PATCH)

    def delete(self, suffix: str) -> None:
        self.server.ask("DELETE", f"{SECRETS}/{self.name}{suffix}")


@pytest.fixture
def place(server: ApiServer, own_name: str) -> Place:
    return Place(server, own_name)


def test_three_secrets_are_made_of_which_the_servers_has_what_the_chart_mounts(place: Place) -> None:
    assert place.run() == ["made"] * 3
    found = place.found()
    assert {each["type"] for each in found.values()} == {"kubernetes.io/tls"}
    assert {suffix: set(each["data"]) for suffix, each in found.items()} == {
        "-ca": {"tls.crt", "tls.key"},
        "": {"tls.crt", "tls.key", "ca.crt"},
        "-scheduler": {"tls.crt", "tls.key", "ca.crt"},
    }
    authority = found["-ca"]["data"]["tls.crt"]
    assert found[""]["data"]["ca.crt"] == found["-scheduler"]["data"]["ca.crt"] == authority


def test_what_is_not_due_is_not_written_and_what_is_due_is_renewed_in_its_place(place: Place) -> None:
    place.run()
    before = place.versions()
    assert place.run(239) == ["kept"] * 3
    assert place.versions() == before
    place.patch("", {"metadata": {"labels": {"owner": "us"}}})
    assert place.run(241) == ["kept", "renewed", "renewed"]
    after = place.found()
    assert place.versions()["-ca"] == before["-ca"]
    assert after[""]["metadata"]["labels"] == {"owner": "us"}
    assert place.run(241) == ["kept"] * 3


def test_what_kubectl_made_of_the_files_is_taken_on(place: Place, tmp_path: Path) -> None:
    place.run()
    for suffix, made in place.found().items():
        words = []
        for key, value in made["data"].items():
            (tmp_path / key).write_bytes(base64.b64decode(value))
            words.append(f"--from-file={tmp_path / key}")
        place.delete(suffix)
        done(place.server.kubectl("create", "secret", "generic", f"{place.name}{suffix}", *words))
    assert place.run(241) == ["kept", "renewed", "renewed"]
    assert {each["type"] for each in place.found().values()} == {"Opaque"}


def test_a_run_that_came_no_further_than_the_renewed_authority_is_brought_to_its_end(place: Place) -> None:
    place.run()
    for after_days in range(241, 3400 - 241, 241):
        place.run(after_days)
    last = place.found()
    assert "renewed" in place.run(3400)[0]
    old = {"data": {"ca.crt": last[""]["data"]["ca.crt"]}}
    for suffix in ("", "-scheduler"):
        assert place.found()[suffix]["data"]["ca.crt"] != old["data"]["ca.crt"]
        place.patch(suffix, old)
    assert place.run(3400) == ["kept"] * 3
    found = place.found()
    assert {found[suffix]["data"]["ca.crt"] for suffix in ("", "-scheduler")} == {found["-ca"]["data"]["tls.crt"]}
    before = place.versions()
    place.run(3400)
    assert place.versions() == before


def other_type(place: Place) -> str:
    data = place.found()[""]["data"]
    place.delete("")
    other = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": place.name}, "type": "edge/other"}
    done(place.server.create({**other, "data": data}))
    return ": is of type 'edge/other', and edgeshare's of kubernetes.io/tls: it stays as it is"


def more_in_it(place: Place) -> str:
    place.patch("-scheduler", {"stringData": {"password": "x"}})
    return "-scheduler: has not ca.crt, tls.crt, tls.key and nothing else"


def less_in_it(place: Place) -> str:
    place.patch("", {"data": {"ca.crt": None}})
    return ": has not ca.crt, tls.crt, tls.key and nothing else"


def another_authority(place: Place) -> str:
    other = Place(place.server, f"{place.name}-other")
    other.run()
    place.patch("", {"data": {"ca.crt": other.found()["-ca"]["data"]["tls.crt"]}})
    return ": ca.crt: is another authority's than the one that would sign"


def another_signer(place: Place) -> str:
    other = Place(place.server, f"{place.name}-other")
    other.run()
    place.patch("-scheduler", {"data": other.found()["-scheduler"]["data"]})
    return f"-scheduler: another authority than Secret default/{place.name}-ca signed it"


def no_authority(place: Place) -> str:
    place.delete("-ca")
    return ": there is no authority beside it that signed it"


def anothers_key(place: Place) -> str:
    place.patch("", {"data": {"tls.key": place.found()["-ca"]["data"]["tls.key"]}})
    return ": its key is another certificate's"


@pytest.mark.parametrize(
    "spoil", [other_type, more_in_it, less_in_it, another_authority, another_signer, no_authority, anothers_key]
)
def test_a_secret_of_another_shape_is_said_in_a_line_and_none_is_written(
    place: Place, spoil: Callable[[Place], str]
) -> None:
    place.run()
    said = spoil(place)
    before = place.versions()
    with pytest.raises(InvalidRequest) as told:
        place.run(300)
    assert str(told.value).startswith(f"Secret default/{place.name}{said}")
    assert "\n" not in str(told.value)
    assert place.versions() == before


@pytest.mark.parametrize("change", ["changed", "deleted", "made"])
def test_what_another_wrote_meanwhile_is_not_written_over(place: Place, change: str) -> None:
    if change != "made":
        place.run()
    secrets = place.secrets()
    for name in Name:
        secrets.read(name)
    if change == "made":
        place.run()
    elif change == "deleted":
        place.delete("")
    else:
        place.patch("", {"metadata": {"labels": {"owner": "us"}}})
    before = place.versions()
    with pytest.raises(Refused, match=r"409|any more") as told:
        secrets.write(Name.SERVER, b"certificate", b"key", b"authority")
    assert "\n" not in str(told.value)
    assert place.versions() == before


def command(*words: str) -> EdgeshareError:
    """What the command ends with."""
    result = CliRunner().invoke(cli, ["sharemgr", "certificates", "--apply", *words])
    assert isinstance(result.exception, EdgeshareError), result.output
    assert "\n" not in str(result.exception)
    return result.exception


def test_command_applies_by_a_kubeconfig_of_the_environment(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(place.server.kubeconfig))
    words = ("sharemgr", "certificates", "--apply", "--namespace", "default", "--secret", place.name)
    told = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert [line.partition(", until")[0] for line in told.output.splitlines()] == [
        f"Secret default/{place.name}{suffix}: made" for suffix in SUFFIXES
    ]
    assert set(place.found()) == set(SUFFIXES)


def test_without_one_it_asks_by_the_pods_service_account_and_outside_of_a_pod_by_that_of_the_home(
    place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube/config").write_bytes(place.server.kubeconfig.read_bytes())
    assert "/api/v1/namespaces/nowhere/secrets" in str(command("--namespace=nowhere"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    assert "the pod has no service account in /var/run/secrets/kubernetes.io" in str(command("--namespace=nowhere"))


def test_who_has_no_right_is_told_so(place: Place, tmp_path: Path) -> None:
    config = yaml.safe_load(place.server.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": done(place.server.kubectl("create", "token", "default")).stdout.strip()}
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
    told = command(f"--kubeconfig={tmp_path / 'kubeconfig'}", "--namespace=default", f"--secret={place.name}")
    assert isinstance(told, Refused)
    assert f'403 secrets "{place.name}-ca" is forbidden: User "{NOBODY}" cannot get resource' in str(told)


def test_a_namespace_that_is_not_there_is_said(place: Place) -> None:
    told = command(f"--kubeconfig={place.server.kubeconfig}", "--namespace=nowhere")
    assert "the API server has nothing at /api/v1/namespaces/nowhere/secrets: make its namespace first" in str(told)


def test_an_api_server_that_is_away_is_said(place: Place, tmp_path: Path) -> None:
    config = yaml.safe_load(place.server.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
    told = command(f"--kubeconfig={tmp_path / 'kubeconfig'}")
    assert isinstance(told, Unavailable)
    assert not isinstance(told, Conflicting | Refused)
    assert "the API server cannot be asked (GET /api/v1/namespaces/edgeshare/secrets/" in str(told)


def test_a_secret_that_nobody_can_call_so_is_refused(server: ApiServer) -> None:
    for name in ("", "A", "a/b", "a..b", "a-", "a" * 244):
        with pytest.raises(InvalidRequest, match="is no name of a Secret"):
            KubeSecrets(Kube.from_kubeconfig(server.kubeconfig), "default", name)
