"""What cert-manager is told on the page on placing pods: what the chart, the assigner and kube-scheduler take. That its
kinds are written right, an API server says (`tests/deploy/documents`)."""

import re
from pathlib import Path

import pytest
import yaml

from sharemgr.cluster.issuing.kube_secrets import SUFFIXES
from sharemgr.cluster.issuing.renewal import COMMON_NAMES, Name, for_assigner, service_hosts
from tests.kit.deploy.objects import Object, Render

PAGE = (Path(__file__).parents[3] / "docs/install/placement.md").read_text()
(BLOCK,) = (
    each for each in re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL) if "cert-manager" in each
)
OBJECTS: list[Object] = list(yaml.safe_load_all(BLOCK))
SECRET = "edgeshare-assigner-tls"
CERTIFICATES = {each["spec"]["secretName"]: each["spec"] for each in OBJECTS if each["kind"] == "Certificate"}
ISSUERS = {each["metadata"]["name"]: each["spec"] for each in OBJECTS if each["kind"] == "Issuer"}


def test_it_makes_the_secrets_that_the_command_would_and_the_chart_is_told_of_on_that_page(render: Render) -> None:
    leaves = for_assigner(service_hosts("edgeshare-assigner", "edgeshare"))
    authority = next(iter(SUFFIXES))
    assert set(CERTIFICATES) == {f"{SECRET}{SUFFIXES[name]}" for name in (authority, *leaves)}
    assert f"--set assigner.tls.secretName={SECRET}\n" in PAGE
    objects = render("assigner.enabled=true", f'assigner.tls.secretName="{SECRET}"')
    (deployment,) = (each for each in objects if each["kind"] == "Deployment")
    secrets = [each.get("secret") for each in deployment["spec"]["template"]["spec"]["volumes"]]
    assert [each["secretName"] for each in secrets if each] == [SECRET]
    assert {each["metadata"]["namespace"] for each in OBJECTS} == {deployment["metadata"]["namespace"]}


def test_each_is_for_its_end_and_signed_by_the_one_authority() -> None:
    assert CERTIFICATES[SECRET]["usages"] == ["digital signature", "server auth"]
    assert set(CERTIFICATES[SECRET]["dnsNames"]) <= service_hosts("edgeshare-assigner", "edgeshare")
    assert CERTIFICATES[f"{SECRET}-scheduler"]["usages"] == ["digital signature", "client auth"]
    assert {name: spec.get("isCA", False) for name, spec in CERTIFICATES.items()} == {
        f"{SECRET}-ca": True,
        SECRET: False,
        f"{SECRET}-scheduler": False,
    }
    signers = {name: ISSUERS[spec["issuerRef"]["name"]] for name, spec in CERTIFICATES.items()}
    by_authority = {"ca": {"secretName": f"{SECRET}-ca"}}
    assert signers == {
        f"{SECRET}-ca": {"selfSigned": {}},
        SECRET: by_authority,
        f"{SECRET}-scheduler": by_authority,
    }


@pytest.mark.parametrize(("name", "whose"), [("-ca", Name.AUTHORITY), ("-scheduler", Name.CLIENT)])
def test_each_has_the_name_by_which_it_is_known(name: str, whose: Name) -> None:
    assert CERTIFICATES[f"{SECRET}{name}"]["commonName"] == COMMON_NAMES[whose]


def test_the_assigner_as_the_chart_has_it_lets_in_the_one_that_is_kube_schedulers(render: Render) -> None:
    objects = render("assigner.enabled=true", f'assigner.tls.secretName="{SECRET}"')
    settings = [each["data"]["assigner.yaml"] for each in objects if "assigner.yaml" in each.get("data", {})]
    assert [yaml.safe_load(each)["tls"]["clients"] for each in settings] == [
        [CERTIFICATES[f"{SECRET}-scheduler"]["commonName"]]
    ]
