"""What a leader tells the Service of itself."""

import pytest

from edgeshare.contract.errors import InvalidRequest
from sharemgr.cluster.config import Config
from sharemgr.cluster.replica.announcing import announcement

POD = {"POD_NAME": "assigner-1", "POD_UID": "u1", "POD_IP": "10.0.0.7"}
CONFIG = Config.model_validate({"service": {"namespace": "edge", "name": "assigner"}, "address": ":9444"})


def test_slice_leads_to_the_pod_alone() -> None:
    told = announcement(CONFIG, POD)
    assert told is not None
    path = "/apis/discovery.k8s.io/v1/namespaces/edge/endpointslices/assigner"
    assert told.path == f"{path}?fieldManager=edgeshare-assigner&force=true"
    assert told.body["metadata"]["labels"]["kubernetes.io/service-name"] == "assigner"
    assert told.body["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Pod", "name": "assigner-1", "uid": "u1"}
    ]
    (endpoint,) = told.body["endpoints"]
    assert (endpoint["addresses"], endpoint["conditions"]) == (["10.0.0.7"], {"ready": True})
    assert told.body["addressType"] == "IPv4"
    assert told.body["ports"] == [{"name": "http", "port": 9444, "protocol": "TCP"}]


def test_address_may_be_an_ipv6_one() -> None:
    told = announcement(CONFIG, POD | {"POD_IP": "fd00::7"})
    assert told is not None
    assert (told.body["addressType"], told.body["endpoints"][0]["addresses"]) == ("IPv6", ["fd00::7"])


def test_without_a_service_nothing_is_told() -> None:
    assert announcement(Config(), POD) is None


@pytest.mark.parametrize("missing", POD)
def test_what_is_missing_is_named(missing: str) -> None:
    with pytest.raises(InvalidRequest, match=f"service: {missing} is not in the environment: set it"):
        announcement(CONFIG, {key: value for key, value in POD.items() if key != missing})


@pytest.mark.parametrize("address", ["", "here", "10.0.0.7/24", "10.0.0.7\n"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(InvalidRequest, match=r"service: POD_IP is .*: expected an address"):
        announcement(CONFIG, POD | {"POD_IP": address})
