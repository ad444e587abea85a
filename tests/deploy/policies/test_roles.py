"""Each right that the chart gives, and who needs it: it gives none that nobody is named for, and who is named for one
asks for it in its own code."""

import ast
from pathlib import Path

import pytest

from edgeshare.contract.names import ACCELERATOR_NODES_CRD
from tests.kit.deploy.objects import Object, Render

ROOT = Path(__file__).parents[3]

Right = tuple[str, str]
"""A resource with its group, as RBAC's messages have it, and a verb."""

PLUGIN, LABELLER, ASSIGNER = "edgeshare", "edgeshare-labeller", "edgeshare-assigner"
REMOVAL = "edgeshare-removal"
KUBE_SCHEDULER = "kube-scheduler"
"""Somebody else's program, which the assigner's pod has with `scheduler.enabled`."""

ADMISSION = "deploy/chart/templates/policies/assignment.yaml: assignments"
"""Nobody asks the API server for this right by a call: a policy asks whether who writes an assignment has it."""

FOLLOWING = ("edgeshare/kube/following.py: objects", "edgeshare/kube/following.py: changes")
LEASES = "sharemgr/cluster/replica/lease.py: {}"

OF_PLUGIN: dict[Right, tuple[str, ...]] = {
    ("pods", "get"): ("deviceplugin/admission/identity.py: pod", "deviceplugin/allocations/lifetimes.py: pod"),
    ("pods", "list"): ("sharemgr/node/events.py: pods_on", "deviceplugin/cluster/cluster.py: follow", FOLLOWING[0]),
    ("pods", "watch"): ("deviceplugin/cluster/cluster.py: follow", FOLLOWING[1]),
    ("pods", "patch"): ("deviceplugin/cluster/assignments.py: annotate_pod",),
    ("assignments.share.edge", "set"): (ADMISSION,),
    (ACCELERATOR_NODES_CRD, "list"): ("deviceplugin/cluster/publishing.py: follow", FOLLOWING[0]),
    (ACCELERATOR_NODES_CRD, "watch"): ("deviceplugin/cluster/publishing.py: follow", FOLLOWING[1]),
    # By server-side apply, which makes what is not there.
    (ACCELERATOR_NODES_CRD, "create"): ("deviceplugin/cluster/publishing.py: apply",),
    (ACCELERATOR_NODES_CRD, "patch"): ("deviceplugin/cluster/publishing.py: apply",),
    ("nodes", "get"): ("deviceplugin/cluster/node.py: node", "deviceplugin/cluster/publishing.py: node"),
    ("nodes/status", "patch"): ("deviceplugin/cluster/node.py: patch_node_status",),
    ("events", "create"): ("deviceplugin/cluster/node.py: event", "sharemgr/node/events.py: event"),
}
OF_LABELLER: dict[Right, tuple[str, ...]] = {
    ("nodes", "get"): ("labeller/node_output.py: node", "labeller/feature_output.py: node"),
    ("nodes", "patch"): ("labeller/node_output.py: apply",),
    ("nodefeatures.nfd.k8s-sigs.io", "get"): ("labeller/feature_output.py: object_at",),
    ("nodefeatures.nfd.k8s-sigs.io", "delete"): ("labeller/feature_output.py: delete",),
}
OF_FEATURES: dict[Right, tuple[str, ...]] = {
    ("nodefeatures.nfd.k8s-sigs.io", "create"): ("labeller/feature_output.py: apply",),
    ("nodefeatures.nfd.k8s-sigs.io", "patch"): ("labeller/feature_output.py: apply",),
}
TAKEN = "deviceplugin/cluster/removal.py: {}"
OF_RESOURCES: dict[Right, tuple[str, ...]] = {
    ("nodes", "get"): (TAKEN.format("node"),),
    ("nodes", "list"): ("edgeshare/kube/every_node.py: objects",),
    ("nodes/status", "patch"): (TAKEN.format("patch_node_status"),),
    (ACCELERATOR_NODES_CRD, "delete"): (TAKEN.format("delete"),),
}
OF_REMOVAL: dict[Right, tuple[str, ...]] = {**OF_LABELLER, **OF_RESOURCES}
OF_KIND: dict[Right, tuple[str, ...]] = {
    ("customresourcedefinitions.apiextensions.k8s.io", "delete"): (TAKEN.format("delete"),),
}
OF_ASSIGNER: dict[Right, tuple[str, ...]] = {
    ("pods", "get"): ("sharemgr/cluster/replica/api.py: pod_path",),
    **{
        (resource, verb): ("sharemgr/cluster/service.py: Source", following)
        for resource in ("pods", ACCELERATOR_NODES_CRD, "nodes")
        for verb, following in zip(("list", "watch"), FOLLOWING, strict=True)
    },
    ("pods/binding", "create"): ("sharemgr/cluster/replica/api.py: bind",),
    ("assignments.share.edge", "set"): (ADMISSION,),
    ("nodes/status", "patch"): ("sharemgr/cluster/replica/api.py: annotate_node",),
}
OF_LEADER: dict[Right, tuple[str, ...]] = {
    ("leases.coordination.k8s.io", "create"): (LEASES.format("_write"),),
    ("leases.coordination.k8s.io", "get"): (LEASES.format("_attempt"),),
    ("leases.coordination.k8s.io", "update"): (LEASES.format("_write"),),
    ("endpointslices.discovery.k8s.io", "create"): ("sharemgr/cluster/replica/announcing.py: announce",),
    ("endpointslices.discovery.k8s.io", "patch"): ("sharemgr/cluster/replica/announcing.py: announce",),
}
OF_SCHEDULERS_LEASE: dict[Right, tuple[str, ...]] = {
    **{("leases.coordination.k8s.io", verb): (KUBE_SCHEDULER,) for verb in ("create", "get", "update")},
    ("leases.coordination.k8s.io", "list"): ("sharemgr/cluster/replica/leading.py: follow", FOLLOWING[0]),
    ("leases.coordination.k8s.io", "watch"): ("sharemgr/cluster/replica/leading.py: follow", FOLLOWING[1]),
}
OF_STATUS: dict[Right, tuple[str, ...]] = {
    ("tokenreviews.authentication.k8s.io", "create"): ("sharemgr/cluster/status/rights.py: TOKEN_REVIEWS",),
    ("subjectaccessreviews.authorization.k8s.io", "create"): ("sharemgr/cluster/status/rights.py: ACCESS_REVIEWS",),
    **{
        ("endpointslices.discovery.k8s.io", verb): ("sharemgr/cluster/status/cluster_status.py: follow", following)
        for verb, following in zip(("list", "watch"), FOLLOWING, strict=True)
    },
}
NODES = {PLUGIN: OF_PLUGIN, LABELLER: OF_LABELLER, REMOVAL: OF_REMOVAL}
BESIDE = ("scheduler.enabled=true", 'scheduler.image="registry.example/kube-scheduler:v1.30.3"')
NOBODY = "scheduler.enabled=false"
STATUS = "clusterStatus.enabled=true"
ALONE = ("assigner.enabled=true", "assigner.tls.enabled=false")


def given(objects: list[Object]) -> dict[str, set[Right]]:
    """What the Roles and ClusterRoles of each name allow."""
    rights: dict[str, set[Right]] = {}
    for each in objects:
        if each["kind"] in ("Role", "ClusterRole"):
            of_name = rights.setdefault(each["metadata"]["name"], set())
            of_name |= {
                (f"{resource}.{group}" if group else resource, verb)
                for rule in each["rules"]
                for group in rule["apiGroups"]
                for resource in rule["resources"]
                for verb in rule["verbs"]
            }
    return rights


@pytest.mark.parametrize(
    ("values", "needed"),
    [
        ((), {**NODES, ASSIGNER: {**OF_ASSIGNER, **OF_SCHEDULERS_LEASE}}),
        ((NOBODY,), NODES),
        ((NOBODY, 'labeller.config={"output": "nodefeature"}'), {**NODES, LABELLER: {**OF_LABELLER, **OF_FEATURES}}),
        ((NOBODY, "labeller.enabled=false"), {PLUGIN: OF_PLUGIN, REMOVAL: OF_RESOURCES}),
        ((NOBODY, "crds.keep=false"), {**NODES, REMOVAL: {**OF_REMOVAL, **OF_KIND}}),
        (ALONE, {**NODES, ASSIGNER: {**OF_ASSIGNER, **OF_LEADER}}),
        (BESIDE, {**NODES, ASSIGNER: {**OF_ASSIGNER, **OF_SCHEDULERS_LEASE}}),
        ((*ALONE, STATUS), {**NODES, ASSIGNER: {**OF_ASSIGNER, **OF_LEADER, **OF_STATUS}}),
        ((*BESIDE, STATUS), {**NODES, ASSIGNER: {**OF_ASSIGNER, **OF_SCHEDULERS_LEASE, **OF_STATUS}}),
    ],
    ids=[
        "as shipped",
        "nobody assigns",
        "nodefeature",
        "no labeller",
        "no kind",
        "assigner",
        "scheduler",
        "status",
        "status of the scheduler",
    ],
)
def test_chart_gives_each_part_the_rights_that_somebody_is_named_for_and_no_others(
    render: Render, values: tuple[str, ...], needed: dict[str, dict[Right, tuple[str, ...]]]
) -> None:
    assert given(render(*values)) == {name: set(rights) for name, rights in needed.items()}


def words_of(path: Path) -> set[str]:
    """The names that a module uses: what it calls, or hands on to be called, is one of them."""
    tree = ast.parse(path.read_text())
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return names | {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} | defined(tree)


def defined(tree: ast.Module) -> set[str]:
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize(
    "who",
    sorted(
        {
            who
            for rights in (
                *NODES.values(),
                OF_KIND,
                OF_FEATURES,
                OF_ASSIGNER,
                OF_LEADER,
                OF_SCHEDULERS_LEASE,
                OF_STATUS,
            )
            for named in rights.values()
            for who in named
        }
        - {KUBE_SCHEDULER, ADMISSION}
    ),
)
def test_who_is_named_for_a_right_asks_for_it(who: str) -> None:
    path, _, word = who.partition(": ")
    assert word in words_of(ROOT / path)


def test_policy_asks_for_the_right_that_no_call_takes() -> None:
    path, _, resource = ADMISSION.partition(": ")
    assert f"resource('{resource}').check('set')" in (ROOT / path).read_text()
