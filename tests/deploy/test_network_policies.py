"""Who reaches which port of the chart's pods: one NetworkPolicy for each pod, which names the ports that it opens."""

import json
import subprocess

import pytest

from tests.kit.apiserver.api_server import ApiServer, done, refused
from tests.kit.deploy.objects import Object, Render

ASSIGNER = ("assigner.enabled=true", 'assigner.tls.secretName="assigner-tls"')
MONITORING = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
CONTROL_PLANE: Object = {"ipBlock": {"cidr": "10.0.0.0/24", "except": ["10.0.0.7/32"]}}
SECOND_SCHEDULER: Object = {
    "namespaceSelector": {},
    "podSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["second-scheduler"]}]},
}
VALUES: list[tuple[str, ...]] = [
    (),
    ("scheduler.enabled=true", 'scheduler.image="kube-scheduler:1"'),
    ASSIGNER,
    (*ASSIGNER, "labeller.metricsPort=9467", "assigner.metricsPort=1234"),
    ("shareManager.metricsPort=0",),
    ("shareManager.metricsPort=0", "devicePlugin.metricsPort=0", "labeller.enabled=false"),
    (*ASSIGNER, "assigner.tls.renew=true"),
    (*ASSIGNER, "assigner.tls.enabled=false", "labeller.enabled=false", "devicePlugin.metricsPort=0"),
]


def policies(objects: list[Object]) -> dict[str, Object]:
    """The specs of the NetworkPolicies, by their names."""
    return {each["metadata"]["name"]: each["spec"] for each in objects if each["kind"] == "NetworkPolicy"}


def pods(objects: list[Object]) -> list[Object]:
    """What the chart's controllers make pods of, whatever kind they are."""
    specs = [each["spec"] for each in objects if "spec" in each]
    specs += [each["jobTemplate"]["spec"] for each in specs if "jobTemplate" in each]
    return [each["template"] for each in specs if "template" in each]


def selecting(pod: Object, objects: list[Object]) -> list[Object]:
    """The policies that select a pod."""
    labels = pod["metadata"]["labels"].items()
    return [each for each in policies(objects).values() if each["podSelector"]["matchLabels"].items() <= labels]


def open_ports(pod: Object) -> list[tuple[str, int]]:
    """The ports that a pod's containers declare."""
    return sorted(
        (port.get("protocol", "TCP"), port["containerPort"])
        for container in pod["spec"]["containers"] + pod["spec"].get("initContainers", [])
        for port in container.get("ports", [])
    )


def named_ports(policy: Object) -> list[tuple[str, int]]:
    """The ports that a policy lets somebody reach."""
    return sorted((port["protocol"], port["port"]) for rule in policy["ingress"] for port in rule["ports"])


@pytest.mark.parametrize("values", VALUES)
def test_each_pod_has_one_policy_which_names_the_ports_that_the_pod_opens(
    render: Render, values: tuple[str, ...]
) -> None:
    objects = render(*values)
    assert pods(objects)
    for pod in pods(objects):
        (policy,) = selecting(pod, objects)
        assert policy["policyTypes"] == ["Ingress"]
        assert named_ports(policy) == open_ports(pod)
    assert len(policies(objects)) == len(pods(objects))


@pytest.mark.parametrize("values", VALUES)
def test_no_pod_has_the_network_of_its_node_which_no_policy_is_for(render: Render, values: tuple[str, ...]) -> None:
    for pod in pods(render(*values)):
        assert not pod["spec"].get("hostNetwork")
        assert not [
            port for container in pod["spec"]["containers"] for port in container.get("ports", []) if "hostPort" in port
        ]


def test_policy_selects_no_pod_of_another_part_or_of_anybody_else(render: Render) -> None:
    objects = render(*ASSIGNER, "labeller.metricsPort=9467")
    for name, policy in policies(objects).items():
        assert len([pod for pod in pods(objects) if policy in selecting(pod, objects)]) == 1, name
        labels = policy["podSelector"]["matchLabels"]
        own = (
            labels.get("app.kubernetes.io/instance") == "edgeshare" or "edgeshare-" in labels["app.kubernetes.io/name"]
        )
        assert own, name


def test_metrics_are_for_prometheus_and_the_assigner_is_for_who_has_a_certificate(render: Render) -> None:
    rules = [rule for policy in policies(render(*ASSIGNER)).values() for rule in policy["ingress"]]
    everybody = [rule["ports"] for rule in rules if "from" not in rule]
    assert everybody == [[{"protocol": "TCP", "port": 9443}]]
    assert [rule["from"] for rule in rules if "from" in rule] == [[MONITORING]] * (len(rules) - 1)


def test_who_is_named_is_let_in(render: Render) -> None:
    objects = render(
        *ASSIGNER,
        f"networkPolicies.metricsFrom={json.dumps([SECOND_SCHEDULER, CONTROL_PLANE])}",
        f"networkPolicies.assignerFrom={json.dumps([CONTROL_PLANE])}",
    )
    verbs, metrics = policies(objects)["edgeshare-assigner"]["ingress"]
    assert verbs == {"ports": [{"protocol": "TCP", "port": 9443}], "from": [CONTROL_PLANE]}
    assert metrics == {"ports": [{"protocol": "TCP", "port": 9466}], "from": [SECOND_SCHEDULER, CONTROL_PLANE]}


def test_nobody_is_nobody_and_not_everybody(render: Render) -> None:
    """A rule with an empty `from` would let everybody in."""
    objects = render(*ASSIGNER, "networkPolicies.metricsFrom=[]", "networkPolicies.assignerFrom=[]")
    assert {name: policy["ingress"] for name, policy in policies(objects).items()} == {
        "edgeshare": [],
        "edgeshare-labeller": [],
        "edgeshare-assigner": [],
        "edgeshare-removal": [],
    }


def test_any_is_everybody(render: Render) -> None:
    rules = policies(render('networkPolicies.metricsFrom="any"'))["edgeshare"]["ingress"]
    assert rules == [{"ports": [{"protocol": "TCP", "port": port} for port in (9464, 9465)]}]


def test_there_are_none_where_they_are_left_out(render: Render) -> None:
    assert policies(render(*ASSIGNER, "networkPolicies.enabled=false")) == {}


def test_policy_of_what_helm_runs_last_goes_with_it(render: Render) -> None:
    def annotations(kind: str) -> Object:
        (found,) = (
            each["metadata"]["annotations"]
            for each in render()
            if each["kind"] == kind and each["metadata"]["name"] == "edgeshare-removal"
        )
        return dict(found)

    job, policy = annotations("Job"), annotations("NetworkPolicy")
    assert int(policy.pop("helm.sh/hook-weight")) < int(job.pop("helm.sh/hook-weight"))
    assert policy == job


@pytest.mark.parametrize(
    "values",
    [
        *VALUES,
        (
            *ASSIGNER,
            "labeller.metricsPort=9467",
            f"networkPolicies.metricsFrom={json.dumps([SECOND_SCHEDULER, CONTROL_PLANE])}",
            "networkPolicies.assignerFrom=[]",
        ),
    ],
)
def test_api_server_takes_them(installed: ApiServer, render: Render, values: tuple[str, ...]) -> None:
    made = [each for each in render(*values) if each["kind"] == "NetworkPolicy"]
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": made})
    words = ("apply", "--dry-run=server", "--validate=strict", "--output=json", "-f", "-")
    taken = json.loads(done(installed.kubectl(*words, stdin=listed)).stdout)
    assert {each["metadata"]["name"]: each["spec"].get("ingress", []) for each in taken.get("items", [taken])} == {
        each["metadata"]["name"]: each["spec"]["ingress"] for each in made
    }


def test_address_that_is_none_is_refused_by_the_api_server(installed: ApiServer, render: Render) -> None:
    """The schema sees its form alone."""
    peers = json.dumps([{"ipBlock": {"cidr": "10.0.0.300/24"}}])
    made = [each for each in render(f"networkPolicies.metricsFrom={peers}") if each["kind"] == "NetworkPolicy"]
    answer = installed.kubectl("apply", "--dry-run=server", "-f", "-", stdin=json.dumps(made[0]))
    refused(answer, 'spec.ingress[0].from[0].ipBlock.cidr: Invalid value: "10.0.0.300/24"')


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ('metricsFrom=[{"podSelecter": {}}]', "metricsFrom/0': additional properties 'podSelecter' not allowed"),
        (
            'assignerFrom=[{"podSelector": {"app": "a"}}]',
            "assignerFrom/0/podSelector': additional properties 'app' not allowed",
        ),
        ("metricsFrom=[{}]", "metricsFrom/0': minProperties: got 0, want 1"),
        ('assignerFrom="all"', "assignerFrom': value must be 'any'"),
        ("metricsFrom={}", "metricsFrom': got object, want array"),
        ('metricsFrom=[{"ipBlock": {"cidr": "10.0.0.1"}}]', "metricsFrom/0/ipBlock/cidr': '10.0.0.1' does not match"),
        (
            'metricsFrom=[{"ipBlock": {"cidr": "10.0.0.0/8"}, "podSelector": {}}]',
            "metricsFrom/0': maxProperties: got 2, want 1",
        ),
        ('enabled="no"', "enabled': got string, want boolean"),
    ],
)
def test_wrong_peer_is_refused_by_its_name(render: Render, value: str, said: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as answer:
        render(f"networkPolicies.{value}")
    assert f"at '/networkPolicies/{said}" in answer.value.stderr
