"""What can be set on the assigner, in its YAML file; units end the keys."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from edgeshare.config_file import Address, MetricsAddress
from edgeshare.contract.address import parse_address
from edgeshare.contract.object_names import LABEL
from edgeshare.tls_files import TlsFiles
from sharemgr.cluster.placement.policies import DEFAULT, POLICIES

LOOPBACK = ("127.0.0.1", "::1", "localhost")

NAMESPACE = rf"^{LABEL}$"
NAME = r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$"
"""Kubernetes' rules for names (apimachinery, util/validation)."""

COMMON_NAME_MAX = 64
"""Characters (X.520, ub-common-name)."""


def _policy(name: str) -> str:
    if name not in POLICIES:
        raise ValueError(f"has to be one of {', '.join(POLICIES)}")
    return name


class Choice(StrEnum):
    """How a policy's choice of a node reaches kube-scheduler."""

    SCORES = "scores"
    """prioritize ranks the nodes, and kube-scheduler adds its own scores to that."""
    FILTER = "filter"
    """filter answers with the best node alone: the policy's choice holds, and kube-scheduler's scores do not count."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Tls(_Part):
    """The files of a Secret, as it is mounted. They are read anew when they change."""

    certificate: Path
    """The server's, with those between it and its authority; PEM."""

    private_key: Path
    """The key of the certificate; PEM, not encrypted."""

    client_authority: Path | None = None
    """Who signed the certificates that clients have to show; PEM. None: clients show none, and everybody is let in."""

    clients: tuple[Annotated[str, Field(min_length=1, max_length=COMMON_NAME_MAX)], ...] = ()
    """The common names that are let in, `system:kube-scheduler` for one. Empty: everyone whom ``client_authority``
    signed for; a cluster's own authority signs for every kubelet, too."""

    @model_validator(mode="after")
    def _clients_are_known(self) -> Self:
        if self.clients and self.client_authority is None:
            raise ValueError("clients needs client_authority: without it no client shows a certificate")
        return self

    @property
    def files(self) -> tuple[Path, ...]:
        """All that are named."""
        files = (self.certificate, self.private_key, self.client_authority)
        return tuple(file for file in files if file is not None)


class ObjectName(_Part):
    """An object in a namespace."""

    namespace: Annotated[str, Field(pattern=NAMESPACE)]
    """Where it is."""

    name: Annotated[str, Field(pattern=NAME)]
    """What it is called."""


class Managers(TlsFiles):
    """How the nodes' share managers are asked: the files are those of who asks."""

    authority: Path
    """Who signed the managers' certificates; PEM."""

    service: ObjectName
    """The Service, a headless one, whose endpoints the managers are: of these its EndpointSlices tell."""


class Status(_Part):
    """Where the cluster's status is told, and where it is from."""

    address: Address = ":9467"
    """``host:port`` (``:port``: every address of this machine) of the gRPC service ``ClusterStatus``."""

    certificate: Path
    """The server's, with those between it and its authority; PEM."""

    private_key: Path
    """The key of the certificate; PEM, not encrypted."""

    page_address: MetricsAddress = ""
    """``host:port`` where it is served as a page for browsers, over TLS with the same certificate, to who shows a token
    that may list the pods; empty: nowhere."""

    managers: Managers


class Config(_Part):
    """The assigner's configuration. Unknown keys are refused."""

    address: Address = ":9443"
    """``host:port`` (``:port``: every address of this machine) where kube-scheduler is answered."""

    metrics_address: MetricsAddress = ""
    """``host:port`` where ``/metrics`` (Prometheus), ``/healthz`` and ``/readyz`` are served over HTTP, to whoever can
    reach it; empty: nowhere. The chart sets it."""

    policy: Annotated[str, AfterValidator(_policy)] = DEFAULT
    """Which node and which GPU a pod gets: `usable`, `fgd`, `binpack`, `spread` or `aware` (docs/develop/replay.md). No
    profiles are kept yet that `aware` could go by: it does what `usable` does."""

    choice: Choice = Choice.SCORES
    """`scores` or `filter`: whether kube-scheduler's own scores count beside the policy's."""

    bind_timeout_s: Annotated[float, Field(ge=0.1, lt=5)] = 3.0
    """How long a bind may take. kube-scheduler waits for 5 s (its ``httpTimeout``), and has to be told before that what
    became of it. And one that began while its replica led must be over before another leads: see ``leading.py``."""

    kubeconfig: Path | None = None
    """How the API server is reached. Default: the service account."""

    tls: Tls | None = None
    """None: plain HTTP, and everybody who reaches the address is answered."""

    lease: ObjectName | None = None
    """The Lease by which replicas agree on who of them leads; whoever takes it first makes it. None: this is the only
    one, and it always leads."""

    scheduler_lease: ObjectName | None = None
    """The Lease by which the replicas of a kube-scheduler agree, one of which runs in this one's pod and asks it alone:
    it leads while that one does. In place of ``lease`` and ``service``."""

    service: ObjectName | None = None
    """The Service, one without a selector, that the leader has lead to itself; its port is called `https`, or `http`
    without ``tls``. The replica has to be a pod of that namespace. A replica that stands by is ready then, too. None:
    only the leader is, so that a Service that selects the replicas leads to it."""

    status: Status | None = None
    """None: nobody is told the cluster's status, and no manager is asked."""

    @model_validator(mode="after")
    def _one_says_who_leads(self) -> Self:
        if self.scheduler_lease is not None and (self.lease is not None or self.service is not None):
            raise ValueError("scheduler_lease is in place of lease and service: the scheduler of the same pod asks")
        if self.service is not None and self.port == 0:
            raise ValueError("address: the service is told the port: choose one from 1 to 65535")
        return self

    @property
    def is_local(self) -> bool:
        """Whether it answers its own machine or pod alone."""
        return parse_address(self.address)[0] in LOOPBACK

    @property
    def openness(self) -> str:
        """Who may have pods bound beside clients that are named; empty: nobody."""
        if self.tls is None and self.is_local:
            return ""
        if self.tls is None:
            return f"no tls is configured: whoever reaches {self.address} may bind pods"
        if self.tls.client_authority is None:
            return f"no tls.client_authority is configured: whoever reaches {self.address} may bind pods"
        if not self.tls.clients:
            signer = f"whoever {self.tls.client_authority} signed for may bind pods"
            return f"no tls.clients are configured: {signer}, every kubelet where that is the cluster's"
        return ""

    @property
    def port(self) -> int:
        """Of ``address``."""
        return parse_address(self.address)[1]
