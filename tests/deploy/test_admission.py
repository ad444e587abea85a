"""The API server refuses what no node can give; the reason names container, value and what is allowed."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from deviceplugin.pods.pod_spec import parse_terms
from edgeshare.contract.accelerator_kind import EDGETPU, GPU
from edgeshare.contract.errors import InvalidRequest
from edgeshare.contract.quantity import whole_number
from edgeshare.contract.units import MAX_DEVICES_PER_ALLOCATION, UNITS_PER_DEVICE, parse_request_percent
from sharemgr.cluster.state.pods import parse_pod
from tests.kit.apiserver.api_server import ApiServer, until_told

Case = dict[str, Any]
CONTAINERS = ("main", "second", "third")
INIT_CONTAINERS = ("setup", "later")
OTHER_INIT_CONTAINERS = ("before", "beside", "last")
MANY = 32
"""Containers of a pod, and as many init containers."""
RANDOM_PODS = 500
CASES: list[Case] = yaml.safe_load((Path(__file__).parent / "admission_cases.yaml").read_text())


def pod(case: Case, name: str) -> dict[str, Any]:
    """The pod of a case of admission_cases.yaml."""

    def containers(*names: str, **more: str) -> list[dict[str, Any]]:
        return [
            {"name": each, "image": "none", "resources": {"limits": case[each]}, **more}
            for each in names
            if each in case
        ]

    mains = containers(*CONTAINERS)
    if "requests" in case:
        mains[0]["resources"]["requests"] = case["requests"]
    always = {"restartPolicy": "Always"}
    inits = [
        *containers("before", **always),
        *containers(*INIT_CONTAINERS),
        *containers("beside", **always),
        *containers("last"),
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": case.get("annotations", {}), "labels": case.get("labels", {})},
        "spec": {
            "containers": mains or [{"name": "main", "image": "none"}],
            "initContainers": inits,
            "resources": case.get("resources"),
        },
    }


def is_valid(percent: int) -> bool:
    """What the contract's own code says of a request."""
    try:
        parse_request_percent(percent)
    except InvalidRequest:
        return False
    return True


@pytest.fixture(scope="module")
def verdicts(installed: ApiServer) -> tuple[set[str], list[str]]:
    """What is said of all cases, whose pods are named `case-` and their number."""
    return installed.admitted([pod(case, f"case-{number}") for number, case in enumerate(CASES)])


@pytest.mark.parametrize("number", range(len(CASES)), ids=[case["name"] for case in CASES])
def test_pod_is_admitted_or_refused_with_the_reason(number: int, verdicts: tuple[set[str], list[str]]) -> None:
    admitted, messages = verdicts
    said = [message for message in messages if f'"case-{number}"' in message]
    if expected := CASES[number].get("refused"):
        assert len(said) == 1
        assert expected in said[0]
    else:
        assert said == []
    assert (f"case-{number}" in admitted) is not bool(expected)


def test_policy_admits_the_very_percents_that_the_parts_accept(installed: ApiServer) -> None:
    whole = [UNITS_PER_DEVICE * devices for devices in range(2, MAX_DEVICES_PER_ALLOCATION + 2)]
    percents = [*range(UNITS_PER_DEVICE + 2), *(each + off for each in whole for off in (-1, 0, 1))]
    pods = [pod({"main": {"edge/gpu-percent": percent}}, f"percent-{percent}") for percent in percents]
    admitted, _ = installed.admitted(pods)

    assert admitted == {f"percent-{percent}" for percent in percents if is_valid(percent)}


def test_pod_that_was_there_before_the_policy_can_still_be_changed(installed: ApiServer) -> None:
    done = installed.kubectl("label", "pod", "older", "changed=yes")
    assert done.returncode == 0, done.stderr


def test_share_annotation_that_is_changed_later_is_checked(installed: ApiServer) -> None:
    done = installed.create(pod({"main": {"edge/gpu-percent": 50}}, "edited"))
    assert done.returncode == 0, done.stderr
    good = installed.kubectl("annotate", "pod", "edited", "edge/gpu-percent-limit=60")
    assert good.returncode == 0, good.stderr
    bad = installed.kubectl("annotate", "--overwrite", "pod", "edited", "edge/gpu-percent-limit=40")
    assert bad.returncode == 1
    assert "above the annotation edge/gpu-percent-limit: 40" in bad.stderr


def test_who_asks_for_a_certain_gpu_is_warned_that_nobody_goes_by_that(installed: ApiServer) -> None:
    def warned(**metadata: dict[str, str]) -> str:
        asking = pod({"main": {"edge/gpu-percent": 50}, **metadata}, "choosy")
        done = installed.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(asking))
        assert done.returncode == 0, done.stderr
        return done.stderr

    every = {
        "annotations": {"edge/gpu-model": "Tesla-T4"},
        "labels": {"edge/gpu-affinity": "a", "edge/gpu-exclusion": "b"},
    }
    names = "edge/gpu-model, edge/gpu-affinity, edge/gpu-exclusion"
    until_told(lambda: warned(**every), f": nobody goes by {names}: the assigner is not enabled")
    assert ": nobody goes by edge/gpu-exclusion: the assigner" in warned(labels={"edge/gpu-exclusion": "b"})
    assert warned() == ""


def test_label_that_is_changed_later_is_checked(installed: ApiServer) -> None:
    done = installed.create(pod({"main": {"edge/gpu-percent": 200}}, "whole"))
    assert done.returncode == 0, done.stderr
    good = installed.kubectl("label", "pod", "whole", "edge/gpu-exclusion=team-a")
    assert good.returncode == 0, good.stderr
    bad = installed.kubectl("label", "pod", "whole", "edge/gpu-affinity=pipeline")
    assert bad.returncode == 1
    assert "pods with the label edge/gpu-affinity share one GPU" in bad.stderr


def test_parts_of_an_init_container_and_of_what_runs_beside_it_fit_on_16_gpus(installed: ApiServer) -> None:
    def starting(name: str, percents: list[str], beside: int) -> dict[str, Any]:
        inits = [
            {"name": f"init-{n}", "image": "none", "resources": {"limits": {"edge/gpu-percent": percent}}}
            for n, percent in enumerate(percents)
        ]
        for each in inits[:beside]:
            each["restartPolicy"] = "Always"
        described = pod({}, name)
        return {**described, "spec": {**described["spec"], "initContainers": inits}}

    over = starting("over", ["51"] * 17, beside=16)
    fitting = [starting("fewer", ["51"] * 16, beside=15), starting("in-turn", ["51"] * 17, beside=15)]
    admitted, messages = installed.admitted([over, *fitting])
    assert admitted == {"fewer", "in-turn"}
    assert "need 17 GPUs: no two that ask for edge/gpu-percent above 50 fit on one" in messages[0]
    faults = [parse_pod({**each, "metadata": {**each["metadata"], "uid": "u"}}).fault for each in (over, *fitting)]
    assert [bool(fault) for fault in faults] == [True, False, False]


def test_label_by_which_a_gpu_was_chosen_stays(installed: ApiServer) -> None:
    bound = pod({"main": {"edge/gpu-percent": 20}, "labels": {"edge/gpu-exclusion": "team-a"}}, "bound")
    bound["spec"]["nodeName"] = "somewhere"
    done = installed.create(bound)
    assert done.returncode == 0, done.stderr
    other = installed.kubectl("label", "pod", "bound", "colour=blue")
    assert other.returncode == 0, other.stderr
    for change in ("edge/gpu-exclusion=team-b", "edge/gpu-exclusion-", "edge/gpu-affinity=pipeline"):
        bad = installed.kubectl("label", "--overwrite", "pod", "bound", change)
        assert bad.returncode == 1, change
        assert f"the label {change.rstrip('-').partition('=')[0]} of a pod that is on a node cannot be" in bad.stderr
    patch = json.dumps({"metadata": {"labels": {"edge/gpu-exclusion": "team-b"}}})
    bad = installed.kubectl("patch", "pod", "bound", "--subresource=status", "--type=merge", f"--patch={patch}")
    assert bad.returncode == 1
    assert "the label edge/gpu-exclusion of a pod that is on a node cannot be" in bad.stderr
    told = json.dumps({"status": {"phase": "Running"}})
    good = installed.kubectl("patch", "pod", "bound", "--subresource=status", "--type=merge", f"--patch={told}")
    assert good.returncode == 0, good.stderr


def test_pod_of_many_containers_is_looked_at_in_full(installed: ApiServer) -> None:
    """The API server bounds what a policy may cost it, and refuses a pod where it would cost more."""

    def large(last: int) -> dict[str, Any]:
        def many(kind: str) -> list[dict[str, Any]]:
            percents = [*[16] * (MANY - 1), last]
            limits = [{"edge/gpu-percent": each, "edge/gpu-memory-mib": 1, "edge/tpu-percent": 1} for each in percents]
            return [
                {"name": f"{kind}-{number}", "image": "none", "resources": {"limits": each}}
                for number, each in enumerate(limits)
            ]

        described = pod({"annotations": {"edge/gpu-model": "L4"}}, "large")
        return {**described, "spec": {"containers": many("main"), "initContainers": many("init")}}

    admitted, said = installed.admitted([large(16)])
    assert admitted == {"large"}
    assert all("the assigner is not enabled" in message for message in said)
    admitted, messages = installed.admitted([large(1600)])
    assert not admitted
    assert any(f"ask for edge/gpu-percent: {16 * (MANY - 1) + 1600} in sum" in message for message in messages)


@pytest.mark.parametrize("case", [case for case in CASES if "refused" not in case], ids=lambda case: case["name"])
def test_plugin_accepts_what_the_policy_admits(case: Case) -> None:
    for container in (*CONTAINERS, *INIT_CONTAINERS, *OTHER_INIT_CONTAINERS):
        limits = {name: str(value) for name, value in case.get(container, {}).items()}
        for kind in (GPU, EDGETPU):
            if percent := limits.get(kind.resource):
                # As the API server answers: quantities are strings.
                asking = pod({**case, container: limits}, "case")
                units = whole_number(percent, container)
                assert parse_terms(asking, container, units, kind).request_percent == min(units, UNITS_PER_DEVICE)


def random_pod(name: str, dice: random.Random) -> dict[str, Any]:
    """One of a few containers of every kind."""

    def container(name: str, **more: str) -> dict[str, Any]:
        limits = {"edge/gpu-percent": dice.choice(("10", "30", "40", "60", "100", "200", "300", "800"))}
        if dice.random() < 0.3:
            limits["edge/gpu-memory-mib"] = "1024"
        if dice.random() < 0.2:
            limits["edge/tpu-percent"] = dice.choice(("10", "60", "200"))
        return {"name": name, "image": "none", "resources": {"limits": limits if dice.random() < 0.85 else {}}, **more}

    inits = [container(f"init-{number}") for number in range(dice.choice((0, 0, 1, 1, 2, 3)))]
    for each in inits:
        if dice.random() < 0.4:
            each["restartPolicy"] = "Always"
    made = pod({"labels": {"edge/gpu-affinity": "x"} if dice.random() < 0.3 else {}}, name)
    mains = [container(f"main-{number}") for number in range(dice.choice((1, 1, 2, 3)))]
    return {**made, "spec": {"containers": mains, "initContainers": inits}}


def test_policy_admits_the_very_pods_that_the_assigner_finds_no_fault_with(installed: ApiServer) -> None:
    dice = random.Random(7)
    pods = [random_pod(f"random-{number}", dice) for number in range(RANDOM_PODS)]
    admitted, _ = installed.admitted(pods)
    read = {
        each["metadata"]["name"]: parse_pod({**each, "metadata": {**each["metadata"], "uid": "u"}}) for each in pods
    }
    assert {name for name in read if name not in admitted} == {name for name in read if read[name].fault}
    assert RANDOM_PODS / 4 < len(admitted) < RANDOM_PODS * 3 / 4
