"""What `helm uninstall` leaves: of what the chart makes outside of the release's namespace nothing, which a test on a
node looks for, and in the namespace what the parts and their commands made there, which the documents name."""

import re
from pathlib import Path

import pytest
import yaml

from tests.kit.apiserver.api_server import ApiServer, done
from tests.kit.deploy.assigner import WITH_SECRET
from tests.kit.deploy.objects import Render, only
from tests.kit.onenode.installed.release import OUTSIDE

PAGE = Path(__file__).parents[3] / "docs/install/index.md"


def test_all_that_it_makes_elsewhere_is_looked_for_when_it_is_gone(render: Render) -> None:
    outside = [each for each in render(version="1.36.0") if each["metadata"].get("namespace") != "edgeshare"]
    # Whether there is anything of it is judged by its name.
    assert [each["metadata"]["name"] for each in outside if "edgeshare" not in each["metadata"]["name"]] == []
    kinds = {re.sub("ys$", "ies", f"{each['kind'].lower()}s") for each in outside}
    assert kinds == set(OUTSIDE) - {"crds"}  # which Helm takes from a folder of their own


def test_kubectl_finds_all_of_these_at_once(installed: ApiServer) -> None:
    found = done(installed.kubectl("get", ",".join(OUTSIDE), "--all-namespaces", "--output=name")).stdout
    for name in ("clusterrole.rbac.authorization.k8s.io/edgeshare", "acceleratornodes.share.edge"):
        assert name in found
    assert "rolebinding.rbac.authorization.k8s.io/edgeshare-labeller" in found


@pytest.mark.parametrize(("values", "key"), [((), "scheduler_lease"), (WITH_SECRET, "lease")])
def test_page_names_the_lease_that_stays(render: Render, values: tuple[str, ...], key: str) -> None:
    text = only(render(*values), "ConfigMap", "edgeshare-assigner")["data"]["assigner.yaml"]
    section = PAGE.read_text().partition("\n## Uninstall\n")[2]
    assert f"`{yaml.safe_load(text)[key]['name']}`" in section
