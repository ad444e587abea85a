"""The assigner as a service: what one term of it is made of."""

from edgeshare.kube import Kube
from edgeshare.names import ACCELERATOR_NODES
from sharemgr.cluster import accelerators, pods
from sharemgr.cluster.assigner import Assigner
from sharemgr.cluster.config import Config
from sharemgr.cluster.replica import Session, Source
from sharemgr.cluster.verbs import Verbs


def session(kube: Kube, config: Config) -> Session:
    """A ledger that knows nothing yet, what it is told by, and the verbs that read and write it."""
    assigner = Assigner(config.policy)
    return Session(
        verbs=Verbs(assigner, kube, config).by_name,
        sources=(
            # Bound ones: what waits to be bound has no part in the ledger.
            Source("/api/v1/pods", "spec.nodeName!=", pods.slim, assigner.pods_listed, assigner.pod_told),
            Source(ACCELERATOR_NODES, "", accelerators.slim, assigner.nodes_listed, assigner.node_told),
        ),
        families=assigner.families,
    )
