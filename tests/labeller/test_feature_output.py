"""A NodeFeature object, as node-feature-discovery reads it."""

from pathlib import Path

import pytest

from edgeshare.contract.errors import InvalidRequest, NotFound, Unavailable
from edgeshare.kube.kube import Kube
from labeller.feature_output import FeatureOutput
from tests.kit.apiserver.scripted_api_server import ApiServer

KEY = ("edgeshare", "edgeshare-n1")
WANTED = {"gpu.model": "Tesla-T4", "edge/gpu.count": "1", "beta.devicetree.org/nvidia-tegra210": "1"}
NAMED = {
    "feature.node.kubernetes.io/gpu.model": "Tesla-T4",
    "edge/gpu.count": "1",
    "beta.devicetree.org/nvidia-tegra210": "1",
}


@pytest.fixture
def kube(tmp_path: Path, api: ApiServer) -> Kube:
    return Kube.from_kubeconfig(tmp_path / "kubeconfig")


@pytest.fixture
def output(kube: Kube) -> FeatureOutput:
    return FeatureOutput(kube, "n1", "edgeshare")


def labels(api: ApiServer) -> dict[str, str] | None:
    """Those that the object asks for; None where there is none."""
    assert api.features is not None
    found = api.features.get(KEY)
    return found["spec"]["labels"] if found else None


def test_object_says_its_node_goes_with_it_and_names_labels_as_they_will_be(
    api: ApiServer, output: FeatureOutput
) -> None:
    output.write(WANTED, complete=True)
    assert api.features is not None
    made = api.features[KEY]
    assert (made["apiVersion"], made["kind"]) == ("nfd.k8s-sigs.io/v1alpha1", "NodeFeature")
    assert made["metadata"]["labels"]["nfd.node.kubernetes.io/node-name"] == "n1"
    assert made["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "uid-of-n1"}
    ]
    assert made["spec"] == {"labels": NAMED}


def test_stale_labels_go_and_with_the_last_the_object(api: ApiServer, output: FeatureOutput) -> None:
    output.write(WANTED, complete=True)
    written = output.write({"edge/gpu.count": "2"}, complete=True)
    assert labels(api) == {"edge/gpu.count": "2"}
    assert "-beta.devicetree.org/nvidia-tegra210" in written.changed
    output.write({}, complete=True)
    assert labels(api) is None


def test_object_that_somebody_deleted_is_made_anew(api: ApiServer, output: FeatureOutput) -> None:
    output.write(WANTED, complete=True)
    assert api.features is not None
    api.features.clear()
    output.write(WANTED, complete=True)
    assert labels(api) == NAMED


def test_as_long_as_not_all_is_known_nothing_of_ours_changes(api: ApiServer, output: FeatureOutput) -> None:
    output.write({"edge/gpu.count": "1"}, complete=True)
    output.write({"edge/gpu.count": "2", "gpu.driver": "580"}, complete=False)
    assert labels(api) == {"edge/gpu.count": "1", "feature.node.kubernetes.io/gpu.driver": "580"}


def test_removal_takes_the_object_and_is_content_where_there_is_none(api: ApiServer, output: FeatureOutput) -> None:
    output.write(WANTED, complete=True)
    assert output.remove().before == NAMED
    assert labels(api) is None
    assert output.remove().before == {}
    api.features = None
    assert output.remove().before == {}


def test_cluster_without_node_feature_discovery_is_told_of(api: ApiServer, output: FeatureOutput) -> None:
    api.features = None
    with pytest.raises(Unavailable, match="needs node-feature-discovery in the cluster"):
        output.write(WANTED, complete=True)


def test_node_that_nfd_cannot_name_is_refused(api: ApiServer, kube: Kube) -> None:
    with pytest.raises(InvalidRequest, match="choose output node"):
        FeatureOutput(kube, "n" * 64, "edgeshare").write(WANTED, complete=True)
    with pytest.raises(NotFound, match="has no node n2"):
        FeatureOutput(kube, "n2", "edgeshare").write(WANTED, complete=True)
    assert api.features == {}


def test_object_of_another_shape_is_refused_and_stays(api: ApiServer, output: FeatureOutput) -> None:
    assert api.features is not None
    api.features[KEY] = {"spec": {"labels": ["edge"]}}
    with pytest.raises(Unavailable, match=r"edgeshare/edgeshare-n1: spec\.labels is no object"):
        output.write(WANTED, complete=True)
    assert api.features[KEY] == {"spec": {"labels": ["edge"]}}
