"""A Node's labels by server-side apply: ours come, change and go, and others' stay."""

from pathlib import Path

import pytest

from edgeshare.contract.errors import NotFound, Unavailable
from edgeshare.kube.kube import Kube
from labeller.node_output import NodeOutput
from tests.kit.apiserver.scripted_api_server import ApiServer
from tests.kit.apiserver.server_side_apply import update_labels


@pytest.fixture
def output(tmp_path: Path, api: ApiServer) -> NodeOutput:
    return NodeOutput(Kube.from_kubeconfig(tmp_path / "kubeconfig"), "n1")


def others(api: ApiServer, **given: str | None) -> None:
    """Somebody labels the node with kubectl."""
    update_labels(api.nodes["n1"], "kubectl-label", given)


def test_labels_come_change_and_go_and_others_stay(api: ApiServer, output: NodeOutput) -> None:
    others(api, role="edge")
    output.write({"gpu.model": "Tesla-T4", "gpu.driver": "1"}, complete=True)
    assert api.labels() == {"role": "edge", "gpu.model": "Tesla-T4", "gpu.driver": "1"}
    written = output.write({"gpu.model": "Tesla-V100"}, complete=True)
    assert api.labels() == {"role": "edge", "gpu.model": "Tesla-V100"}
    assert written.changed == "gpu.model=Tesla-V100 -gpu.driver"
    output.remove()
    assert api.labels() == {"role": "edge"}


def test_another_owners_label_is_left_with_an_error_and_the_rest_is_written(api: ApiServer, output: NodeOutput) -> None:
    others(api, **{"gpu.model": "mine"})
    written = output.write({"gpu.model": "Tesla-T4", "gpu.driver": "1"}, complete=True)
    assert api.labels() == {"gpu.model": "mine", "gpu.driver": "1"}
    (refusal,) = written.refused
    assert "label gpu.model=mine was set by 'kubectl-label' and stays; ours would be 'Tesla-T4'" in refusal
    others(api, **{"gpu.model": None})
    assert not output.write({"gpu.model": "Tesla-T4", "gpu.driver": "1"}, complete=True).refused
    assert api.labels()["gpu.model"] == "Tesla-T4"


def test_label_of_ours_that_somebody_overwrote_is_theirs(api: ApiServer, output: NodeOutput) -> None:
    output.write({"gpu.model": "Tesla-T4"}, complete=True)
    others(api, **{"gpu.model": "mine"})
    assert len(output.write({"gpu.model": "Tesla-T4"}, complete=True).refused) == 1
    output.remove()
    assert api.labels() == {"gpu.model": "mine"}


def test_label_that_somebody_sets_between_look_and_write_is_theirs(api: ApiServer, output: NodeOutput) -> None:
    def meanwhile() -> None:
        api.before_apply = lambda: None
        others(api, **{"gpu.model": "mine"})

    api.before_apply = meanwhile
    written = output.write({"gpu.model": "Tesla-T4", "gpu.driver": "1"}, complete=True)
    assert api.labels() == {"gpu.model": "mine", "gpu.driver": "1"}
    assert len(written.refused) == 1


def test_who_sets_it_anew_each_time_is_said_in_the_end(api: ApiServer, output: NodeOutput) -> None:
    values = iter(range(100))
    api.before_apply = lambda: others(api, **{f"gpu.{next(values)}": "mine"})
    with pytest.raises(Unavailable, match="409 Apply failed with conflicts"):
        output.write({f"gpu.{number}": "ours" for number in range(100)}, complete=True)


def test_node_of_the_same_name_that_is_made_anew_is_looked_at_anew(api: ApiServer, output: NodeOutput) -> None:
    def meanwhile() -> None:
        api.before_apply = lambda: None
        api.nodes["n1"] = {"metadata": {"name": "n1", "uid": "uid-of-another"}}

    api.before_apply = meanwhile
    output.write({"gpu.model": "Tesla-T4"}, complete=True)
    assert api.labels() == {"gpu.model": "Tesla-T4"}
    assert api.applies == 2


def test_node_that_is_not_there_is_not_made(tmp_path: Path, api: ApiServer) -> None:
    with pytest.raises(NotFound, match="the API server has no node n2"):
        NodeOutput(Kube.from_kubeconfig(tmp_path / "kubeconfig"), "n2").write({"a": "b"}, complete=True)
    assert api.nodes.keys() == {"n1"}


@pytest.mark.parametrize("method", ["GET", "PATCH"])
def test_refusal_is_said_with_its_reason_and_labels_stay(api: ApiServer, output: NodeOutput, method: str) -> None:
    output.write({"gpu.model": "Tesla-T4"}, complete=True)
    api.refused = {method}
    with pytest.raises(Unavailable, match=rf'refuses {method} /api/v1/nodes/n1: 403 User "somebody" cannot {method}'):
        output.write({"gpu.driver": "1"}, complete=True)
    assert api.labels() == {"gpu.model": "Tesla-T4"}


def test_what_is_as_it_should_be_is_not_written(api: ApiServer, output: NodeOutput) -> None:
    for _ in range(3):
        output.write({"gpu.model": "Tesla-T4"}, complete=True)
    assert api.applies == 1
    output.remove()
    output.remove()
    assert api.applies == 2


def test_as_long_as_not_all_is_known_nothing_of_ours_changes(api: ApiServer, output: NodeOutput) -> None:
    output.write({"gpu.model": "Tesla-T4", "gpu.driver": "1"}, complete=True)
    written = output.write({"gpu.driver": "2", "gpu.resource": "nvidia-smi"}, complete=False)
    assert api.labels() == {"gpu.model": "Tesla-T4", "gpu.driver": "1", "gpu.resource": "nvidia-smi"}
    assert written.changed == "gpu.resource=nvidia-smi"
