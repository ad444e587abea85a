"""What the chart's labeller may write at a real API server: labels of its own node, and its NodeFeature."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edgeshare.kube.kube import Kube
from labeller.feature_output import VERSION, FeatureOutput
from labeller.names import FEATURE_PREFIX, FIELD_MANAGER, NFD_NODE_NAME
from tests.kit.apiserver.api_server import ApiServer, Done, done, refused, until_told
from tests.kit.deploy.objects import Object
from tests.kit.programs.binaries import KUBERNETES, program

ROOT = Path(__file__).parents[3]
ACCOUNT = "system:serviceaccount:edgeshare:edgeshare-labeller"

Somebody = Callable[..., ApiServer]


def node(name: str, **labels: str) -> Object:
    """A Node with no kubelet."""
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


def apply(server: ApiServer, name: str, **labels: str) -> Done:
    """Applies labels as the labeller does."""
    words = ("apply", "--server-side", f"--field-manager={FIELD_MANAGER}", "-f", "-")
    return server.kubectl(*words, stdin=json.dumps(node(name, **labels)))


@pytest.fixture(scope="module")
def nodes(installed: ApiServer, somebody: Somebody) -> ApiServer:
    """The API server with two Nodes; the policy is in force."""
    for each in (node("labelled-a", role="edge"), node("labelled-b")):
        done(installed.create(each))
    until_told(lambda: apply(somebody(ACCOUNT), "labelled-b", **{"gpu.model": "x"}).stderr, "its own node alone")
    return installed


def test_labeller_writes_labels_of_its_kind_on_its_own_node_and_nothing_else(
    nodes: ApiServer, somebody: Somebody
) -> None:
    labeller = somebody(ACCOUNT, "labelled-a")
    ours = {"edge/gpu.share": "true", "gpu.model": "Tesla-T4", "beta.devicetree.org/nvidia-tegra210": "1"}
    done(apply(labeller, "labelled-a", **ours))
    refused(apply(labeller, "labelled-b", **ours), "a labeller writes the labels of its own node alone")
    kinds = "a labeller writes labels that begin with edge/, gpu. or beta.devicetree.org/, and not edge/config"
    for name in ("node-role.kubernetes.io/control-plane", "edge/config", "edges/x"):
        refused(apply(labeller, "labelled-a", **ours, **{name: ""}), kinds)
    refused(labeller.kubectl("label", "node", "labelled-a", "role-"), kinds)
    others = "of a Node a labeller writes labels alone"
    refused(labeller.kubectl("annotate", "node", "labelled-a", "other=y"), others)
    refused(labeller.kubectl("taint", "node", "labelled-a", "other=y:NoExecute"), others)
    done(apply(labeller, "labelled-a"))
    left = nodes.kubectl("get", "node", "labelled-a", "--output=jsonpath={.metadata.labels}")
    assert json.loads(left.stdout) == {"role": "edge"}


def test_others_label_nodes_as_ever(nodes: ApiServer) -> None:
    done(nodes.kubectl("label", "node", "labelled-b", "node-role.kubernetes.io/edge=", "edge/config=lab"))


FEATURES = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "nodefeatures.nfd.k8s-sigs.io",
        # Names below k8s.io need it: https://github.com/kubernetes/enhancements/pull/1111
        "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
    },
    "spec": {
        "group": "nfd.k8s-sigs.io",
        "scope": "Namespaced",
        "names": {"kind": "NodeFeature", "plural": "nodefeatures", "singular": "nodefeature"},
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "features": {"type": "object"},
                                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                                },
                            }
                        },
                    }
                },
            }
        ],
    },
}
"""What is needed here of node-feature-discovery's (deployment/base/nfd-crds/nfd-api-crds.yaml there)."""


@pytest.fixture(scope="module")
def with_features(nodes: ApiServer) -> ApiServer:
    """The same API server, which knows NodeFeature objects."""
    done(nodes.kubectl("apply", "-f", "-", stdin=json.dumps(FEATURES)))
    done(nodes.kubectl("wait", "--for=condition=Established", "crd/nodefeatures.nfd.k8s-sigs.io", "--timeout=60s"))
    return nodes


def test_feature_object_is_made_changed_and_deleted_at_a_real_api_server(with_features: ApiServer) -> None:
    output = FeatureOutput(Kube.from_kubeconfig(with_features.kubeconfig), "labelled-b", "edgeshare")

    def made(path: str) -> str:
        found = with_features.kubectl(
            "get", "nodefeatures", "--namespace=edgeshare", f"--output=jsonpath={{.items[*]{path}}}"
        )
        return done(found).stdout

    output.write({"gpu.model": "Tesla-T4", "edge/gpu.count": "1"}, complete=True)
    uid = with_features.kubectl("get", "node", "labelled-b", "--output=jsonpath={.metadata.uid}").stdout
    assert json.loads(made(".metadata.ownerReferences[0]"))["uid"] == uid
    output.write({"edge/gpu.count": "2"}, complete=True)
    assert json.loads(made(".spec.labels")) == {"edge/gpu.count": "2"}
    assert output.remove().before == {"edge/gpu.count": "2"}
    assert made(".metadata.name") == ""


def test_labeller_writes_the_feature_object_of_its_own_node_and_nothing_else(
    with_features: ApiServer, somebody: Somebody
) -> None:
    # What the chart's role allows where features are the output.
    rights = ("--verb=get,create,patch,delete", "--resource=nodefeatures.nfd.k8s-sigs.io")
    done(with_features.kubectl("create", "role", "features", "--namespace=edgeshare", *rights))
    binding = ("--role=features", "--serviceaccount=edgeshare:edgeshare-labeller")
    done(with_features.kubectl("create", "rolebinding", "features", "--namespace=edgeshare", *binding))
    labeller = somebody(ACCOUNT, "labelled-a")

    def write(name: str, of: str, **spec: Any) -> Done:
        metadata = {"name": name, "namespace": "edgeshare", "labels": {NFD_NODE_NAME: of}}
        feature = {"apiVersion": VERSION, "kind": "NodeFeature", "metadata": metadata, "spec": spec}
        return labeller.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(feature))

    ours = {"edge/gpu.share": "true", f"{FEATURE_PREFIX}gpu.model": "x", "beta.devicetree.org/nvidia-tegra210": "1"}
    own, own_node = "edgeshare-labelled-a", "a labeller writes the NodeFeature of its own node alone"
    until_told(lambda: write("edgeshare-labelled-b", "labelled-b", labels=ours).stderr, own_node)
    done(write(own, "labelled-a", labels=ours))
    refused(write(own, "labelled-b", labels=ours), own_node)
    refused(write("other", "labelled-a", labels=ours), own_node)
    kinds = "of a NodeFeature a labeller writes labels that begin with"
    for name in ("node-role.kubernetes.io/control-plane", "edge/config", f"{FEATURE_PREFIX}cpu-model"):
        refused(write(own, "labelled-a", labels={name: ""}), kinds)
    refused(write(own, "labelled-a", labels=ours, features={}), kinds)
    someone_elses = {
        "apiVersion": VERSION,
        "kind": "NodeFeature",
        "metadata": {"name": "theirs"},
        "spec": {"labels": {}},
    }
    done(with_features.kubectl("create", "--namespace=edgeshare", "-f", "-", stdin=json.dumps(someone_elses)))
    delete = ("delete", "nodefeature", "--namespace=edgeshare")
    refused(labeller.kubectl(*delete, "theirs"), own_node)
    done(labeller.kubectl(*delete, own))
    done(with_features.kubectl(*delete, "theirs"))


def test_labels_go_by_what_the_page_says_for_those_without_helm(nodes: ApiServer, tmp_path: Path) -> None:
    done(apply(nodes, "labelled-a", **{"gpu.model": "Tesla-T4"}))
    page = (ROOT / "docs/parts/labeller.md").read_text()
    loop = page[page.index("for node in") : page.index("done\n", page.index("for node in")) + len("done\n")]
    programs = f"{program(KUBERNETES, 'kubectl').parent}:/usr/bin:/bin"
    environment = {"KUBECONFIG": str(nodes.kubeconfig), "HOME": str(tmp_path), "PATH": programs}
    done(subprocess.run(["sh", "-ec", loop], env=environment, capture_output=True, text=True, check=False))
    left = nodes.kubectl("get", "node", "labelled-a", "--output=jsonpath={.metadata.labels}")
    assert json.loads(left.stdout) == {"role": "edge"}
