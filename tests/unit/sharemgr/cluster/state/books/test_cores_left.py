"""Cores and RAM: what a node offers, less what all its pods ask for."""

from sharemgr.cluster.state.books import Books
from sharemgr.cluster.state.cores import Cores, Offer
from sharemgr.cluster.state.pods import SharePod, parse_pod
from tests.kit.assigner.books import G, books_of, node, pod


def without_gpus(uid: str, cpu: str, memory: str, on: str = "n", phase: str = "Running") -> SharePod:
    requests = {"requests": {"cpu": cpu, "memory": memory}}
    spec = {"nodeName": on, "containers": [{"name": "main", "resources": requests}]}
    metadata = {"uid": uid, "namespace": "d", "name": uid}
    return parse_pod({"metadata": metadata, "spec": spec, "status": {"phase": phase}})


def left(books: Books, name: str = "n") -> tuple[int | None, int | None]:
    """Millicores and MiB of RAM that nobody asks for."""
    there = books.ledger.node(name)
    assert there is not None
    return there.cpu_free_milli, there.ram_free_mib


def offer(cpu_milli: int, ram_mib: int, name: str = "n") -> Offer:
    return Offer(name, Cores(cpu_milli, ram_mib))


def test_cores_and_ram_are_what_the_node_offers_less_what_all_its_pods_ask_for() -> None:
    books = books_of(node())
    assert left(books) == (None, None)
    books.offers_listed([offer(8000, 4096), offer(1, 1, "without")])
    assert left(books) == (8000, 4096)
    books.pods_listed([without_gpus("daemon", "500m", "96Mi"), pod("u", {"main": ["g"]}, cpu="2", memory="1Gi")])
    assert left(books) == (5500, 2976)
    assert books.pods == 1
    assert books.ledger.node("without") is None
    books.pod_seen(without_gpus("batch", "1", "1Gi"))
    assert left(books) == (4500, 1952)
    books.pod_seen(without_gpus("batch", "1", "1Gi", phase="Succeeded"))
    assert left(books) == (5500, 2976)
    books.pod_gone("daemon")
    books.pod_gone("u")
    assert left(books) == (8000, 4096)


def test_what_is_told_of_cores_stands_whatever_comes_first_and_goes_with_the_node() -> None:
    books = Books()
    books.pods_listed([without_gpus("daemon", "500m", "96Mi")])
    books.offered(offer(8000, 4096))
    assert list(books.ledger) == []
    books.nodes_listed([node()])
    assert left(books) == (7500, 4000)
    books.node_told(node(gpus=[G]))
    assert left(books) == (7500, 4000)
    books.pods_listed([])
    assert left(books) == (8000, 4096)
    books.offered(offer(9000, 4096))
    assert left(books) == (9000, 4096)
    books.offers_listed([])
    assert left(books) == (None, None)
    books.offered(offer(8000, 4096))
    books.offered(Offer("n", None))
    assert left(books) == (None, None)
    books.node_gone("n")
    assert list(books.ledger) == []


def test_a_pod_without_gpus_that_changes_nothing_leaves_its_node_as_it_was() -> None:
    books = books_of(node())
    books.offered(offer(8000, 4096))
    books.pod_seen(without_gpus("daemon", "500m", "96Mi", phase="Pending"))
    books.ledger.take_changed()
    books.pod_seen(without_gpus("daemon", "500m", "96Mi"))
    books.offered(offer(8000, 4096))
    assert books.ledger.take_changed() == []
