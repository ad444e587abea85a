"""Why a node cannot hold a pod: every GPU is named with what is free of it, and no percent sign is in it."""

from collections.abc import Sequence

from edgeshare.contract.devices import Accelerator
from sharemgr.cluster.placement.reasons import no_devices, state, state_for, unmangled, wish
from sharemgr.cluster.state.ledger import Ledger
from sharemgr.cluster.state.nodes import Device, Inventory, Node
from sharemgr.cluster.state.request import Ask, Holding, Request, Take

PART = Request((Ask(1, 60),))
GPUS = (Device("g", "T4", 8192), Device("h", "T4", 8192), Device("i", "T4", 8192, healthy=False), Device("j", "A10", 0))


def ledger_of(*holdings: Holding, gpus: Sequence[Device] = GPUS) -> Ledger:
    ledger = Ledger()
    for name in ("n", "m"):
        ledger.set_inventory(Inventory(name, tuple(gpus)))
    for holding in holdings:
        ledger.see(holding)
    return ledger


def there(ledger: Ledger) -> Node:
    node = ledger.node("n")
    assert node is not None
    return node


def hold(
    uid: str, gpu: str, units: int, memory_mib: int, node: str = "n", affinity: str = "", exclusion: str = ""
) -> Holding:
    return Holding(uid, node, (Take(gpu, units, memory_mib),), affinity=affinity, exclusion=exclusion)


def test_what_is_asked_for_is_said_in_words() -> None:
    said = {
        Request((Ask(1, 60),)): "60 units of one GPU",
        Request((Ask(1, 60, 4096),)): "60 units and 4,096 MiB of one GPU",
        Request((Ask(1, 100),)): "1 whole GPU",
        Request((Ask(1, 5), Ask(2, 100, 70))): "5 units of one GPU and 2 whole GPUs with 70 MiB each",
    }
    assert {request: wish(request) for request in said} == said


def test_each_gpu_is_named_with_what_is_free() -> None:
    ledger = ledger_of(hold("p", "g", 60, 6144), hold("q", "h", 130, 9000), hold("r", "j", 1, 0))
    assert state(there(ledger)) == (
        "gpu 0: 40 of 100 units free, 2,048 of 8,192 MiB free, gpu 1: 0 of 100 units free, 0 of 8,192 MiB free, "
        "gpu 2: not healthy, gpu 3: 99 of 100 units free"
    )
    assert state_for(ledger, there(ledger), PART) == state(there(ledger))


def test_a_node_without_gpus_says_so() -> None:
    ledger = ledger_of(hold("p", "g", 60, 6144), gpus=())
    assert state(there(ledger)) == no_devices(Accelerator.GPU) == state_for(ledger, there(ledger), PART)


def test_a_gpu_of_another_model_is_named_as_such() -> None:
    told = state_for(ledger_of(), there(ledger_of()), Request((Ask(1, 1),), models=frozenset({"A10"})))
    assert told == ("gpu 0: is of model T4, gpu 1: is of model T4, gpu 2: is of model T4, gpu 3: 100 of 100 units free")


def test_a_gpu_with_pods_of_another_exclusion_names_them() -> None:
    ledger = ledger_of(hold("p", "g", 1, 1, exclusion="x"), hold("q", "g", 1, 1), hold("r", "h", 1, 1, exclusion="y"))
    told = state_for(ledger, there(ledger), Request((Ask(1, 1),), exclusion="y"))
    assert told == (
        "gpu 0: holds pods of exclusion none and 'x', gpu 1: 99 of 100 units free, 8,191 of 8,192 MiB free, "
        "gpu 2: not healthy, gpu 3: 100 of 100 units free"
    )
    assert "gpu 1: holds pods of exclusion 'y'" in state_for(ledger, there(ledger), Request((Ask(1, 1),)))


def test_an_affinity_names_the_gpu_that_its_pods_share() -> None:
    request = Request((Ask(1, 60),), affinity="d/x")
    here = ledger_of(hold("p", "h", 60, 1, affinity="d/x"))
    assert state_for(here, there(here), request) == (
        "gpu 0: is not that of its affinity, gpu 1: 40 of 100 units free, 8,191 of 8,192 MiB free, "
        "gpu 2: is not that of its affinity, gpu 3: is not that of its affinity"
    )
    elsewhere = ledger_of(hold("p", "h", 60, 1, node="m", affinity="d/x"))
    assert state_for(elsewhere, there(elsewhere), request) == "pods of its affinity share GPU h of node m"
    nobody = ledger_of(hold("p", "h", 60, 1, node="m", affinity="d/y"))
    assert state_for(nobody, there(nobody), request) == state(there(nobody))


def test_somebody_elses_words_come_without_a_percent_sign() -> None:
    assert unmangled("is '50%': expected") == "is '50 percent': expected"
