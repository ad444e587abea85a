"""The importer of the Kubernetes client (calls.py has its other half): it reads kubeconfig files, and takes a
Lease for us. Loading it takes 18 MiB, so who does without it does not import this."""

import logging
import os
import shutil
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import urllib3
import yaml
from kubernetes import client, config
from kubernetes.config.kube_config import KubeConfigLoader, KubeConfigMerger
from kubernetes.leaderelection.electionconfig import Config as ElectionConfig
from kubernetes.leaderelection.leaderelection import LeaderElection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

from edgeshare.contract.errors import Unavailable
from edgeshare.kube.messages import CONFLICT, NOT_FOUND, read_token
from edgeshare.log_limit import LogLimit

logger = logging.getLogger(__name__)

Authorization = Callable[[], str | None]

NO_TOKEN = (config.ConfigException, OSError, ValueError)
"""Raised where a token cannot be read."""
NOT_ASKED = (urllib3.exceptions.HTTPError, Unavailable, *NO_TOKEN)
UNUSABLE = (AttributeError, KeyError, TypeError, yaml.YAMLError, *NO_TOKEN)
"""Raised for a kubeconfig: the client looks at none before it uses it."""


def connection(kubeconfig: Path) -> tuple[str, urllib3.PoolManager, Authorization]:
    """What reaches an API server by the current context of a kubeconfig file: its address, the connections, and the
    header that is to be sent. Raises Unavailable where the file cannot be used."""
    settings = settings_of(kubeconfig)
    return settings.host, client.ApiClient(settings).rest_client.pool_manager, authorization_by(settings)


def authorization_by(settings: client.Configuration) -> Authorization:
    """Gives the header that is to be sent, None where a certificate does; to be asked at each call. That raises
    Unavailable where there is no token any more."""
    refresh = settings.refresh_api_key_hook
    if refresh is not None:
        # Of a configuration it would set all else, too, at each call: an address by all of the environment.
        keys = SimpleNamespace(api_key=settings.api_key)
        settings.refresh_api_key_hook = lambda _: refresh(keys)

    def authorization() -> str | None:
        try:
            header: str | None = settings.get_api_key_with_prefix("BearerToken", alias="authorization")
        except NO_TOKEN as error:
            raise Unavailable(f"the token for the API server cannot be read: {error}") from error
        header = header and header.strip()
        # The end of a line in it would begin another header.
        if header and not header.isprintable():
            raise Unavailable("the token for the API server is none")
        return header

    return authorization


def settings_of(kubeconfig: Path | None) -> client.Configuration:
    """The client's configuration by the current context of a kubeconfig file, or of several as ``KUBECONFIG`` names
    them, or by the pod's service account. Raises Unavailable, in one line, where it cannot be used."""
    settings = client.Configuration()
    try:
        if kubeconfig is None:
            config.load_incluster_config(client_configuration=settings)  # type: ignore[no-untyped-call]
        else:
            _load(str(kubeconfig), settings)
    except UNUSABLE as error:
        why = " ".join(str(error).split())
        if isinstance(error, AttributeError | KeyError | TypeError):
            why = f"it is not as kubeconfigs are ({why})"
        raise Unavailable(
            f"the pod has no service account (outside of a pod, name a kubeconfig): {why}"
            if kubeconfig is None
            else f"{kubeconfig}: cannot be used as a kubeconfig: {why}: mend it, or name another one"
        ) from error
    return settings


def _load(paths: str, settings: client.Configuration) -> None:
    """Raises one of UNUSABLE."""
    if not any(Path(each).is_file() for each in paths.split(os.pathsep)):
        raise config.ConfigException("there is no such file")
    merger = KubeConfigMerger(paths)  # type: ignore[no-untyped-call]
    if merger.config is None:
        raise config.ConfigException("it says nothing")
    if not merger.config.value.get("current-context"):
        raise config.ConfigException("it has no current context (kubectl config use-context)")
    loader = KubeConfigLoader(merger.config, config_base_path=None, config_persister=merger.save_changes)  # type: ignore[no-untyped-call]
    context = loader.current_context["context"]
    cluster = merger.config["clusters"].get_with_name(context["cluster"])["cluster"]
    if "server" not in cluster:
        raise config.ConfigException(f"its cluster {context['cluster']} has no server")
    users = merger.config["users"]
    named = users.get_with_name(context["user"], safe=True) if context.get("user") else None
    user: Any = named["user"] if named is not None and named.value.get("user") else {}
    command = str(user["exec"]["command"]) if "exec" in user else ""
    if command and shutil.which(command) is None and not Path(user.path).parent.joinpath(command).is_file():
        raise config.ConfigException(f"its exec plugin {command} is not on the PATH: install it")
    loader.load_and_set(settings)  # type: ignore[no-untyped-call]
    if command and not settings.api_key and not settings.cert_file:
        raise config.ConfigException(f"its exec plugin {command} gives no credentials: run it to see why")
    _check_authority(settings.ssl_ca_cert)
    if "tokenFile" in user and not {"auth-provider", "token"} & user.value.keys():
        _read_anew(Path(user.path).parent / user["tokenFile"], settings)


def _check_authority(path: str | None) -> None:
    try:
        ssl.create_default_context(cafile=path)
    except OSError as error:
        raise config.ConfigException(f"its certificate authority is no certificate ({error})") from error


def _read_anew(token: Path, settings: client.Configuration) -> None:
    """Has a token's file read each time that a header is asked for: it is exchanged while it is used."""

    def refresh(settings: client.Configuration) -> None:
        settings.api_key["BearerToken"] = f"Bearer {read_token(token)}"

    settings.refresh_api_key_hook = refresh  # type: ignore[assignment]
    refresh(settings)


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """Whole seconds, as the Lease has them; the election wants them in falling order, and at least 1."""

    lease_s: int
    """Unrenewed for so long, it is anybody's."""
    renew_s: int
    """Its holder gives up after so long without a renewal."""
    retry_s: int
    """Between two attempts to have it, or to renew it."""


class Candidate:
    """One that wants to hold a Lease, by the client's own leader election. That one waits in `sleep`, never ends while
    it waits, and is told of an API server that is away by whatever the connection raises: so it has a thread, and asks
    through ``_Leases``."""

    def __init__(
        self,
        kubeconfig: Path | None,
        namespace: str,
        name: str,
        identity: str,
        times: LeaseTimes,
        renewed: Callable[[float], None],
        held_by: Callable[[str], None],
    ) -> None:
        """Both are called in the thread: ``renewed`` each time that the Lease became or stayed ours, with the monotonic
        time in seconds at which that was asked for; ``held_by`` with whoever else is found to hold it. Raises
        Unavailable where there is no right to ask the API server."""
        settings = settings_of(kubeconfig)
        # Each attempt is made anew in any case, and must not take longer than half of the time there is (as client-go).
        settings.retries = 0
        api = client.CoordinationV1Api(client.ApiClient(settings))
        self._leases = _Leases(api, identity, times.renew_s / 2, renewed, held_by)
        lock = LeaseLock(name, namespace, identity)  # type: ignore[no-untyped-call]
        lock.api_instance = self._leases  # type: ignore[assignment]
        self._times = times
        # Its callbacks come late: after a whole deadline, when another has long taken the Lease.
        callbacks = dict.fromkeys(("onstarted_leading", "onstopped_leading"), lambda: None)
        self._election = ElectionConfig(lock, times.lease_s, times.renew_s, times.retry_s, **callbacks)  # type: ignore[no-untyped-call]
        self._where = (name, namespace)

    def start(self) -> None:
        """Begins. The thread ends with ``give_back``, soon; and with the process."""
        # It writes a line at each renewal.
        logging.getLogger("leaderelection").setLevel(logging.WARNING)
        threading.Thread(target=self._run, name="takes the Lease", daemon=True).start()

    def give_back(self) -> None:
        """Asks for the Lease no more, and leaves it to the others at once where it is ours. Raises Unavailable where it
        cannot be given back: it is anybody's when it has run out."""
        self._leases.give_back(*self._where)

    def _run(self) -> None:
        log = LogLimit()
        while True:
            try:
                LeaderElection(self._election).run()  # type: ignore[no-untyped-call]
            except _OverError:
                return
            except Exception:
                # A Lease with nonsense in it, say: nobody leads then, and it has to be said for as long as that lasts.
                if (more := log.ending(time.monotonic_ns())) is not None:
                    logger.exception("Lease %s cannot be taken%s", "/".join(reversed(self._where)), more)
                time.sleep(self._times.retry_s)


class _OverError(Exception):
    """Ends the election, which has no other end."""


class _Leases:
    """The calls that a LeaseLock makes: with a limit on their time, with the one error that it knows, and told of."""

    def __init__(
        self,
        api: client.CoordinationV1Api,
        identity: str,
        timeout_s: float,
        renewed: Callable[[float], None],
        held_by: Callable[[str], None],
    ) -> None:
        self._api = api
        self._identity = identity
        self._timeout_s = timeout_s
        self._renewed = renewed
        self._held_by = held_by
        self._writing = threading.Lock()
        self._over = False
        self._said: set[bool] = set()
        """Since it was reached last: that the API server is away (False), that it refuses what it is asked (True)."""

    def read_namespaced_lease(self, name: str, namespace: str) -> client.V1Lease:
        lease = self._ask(self._api.read_namespaced_lease, name, namespace)
        holder = _holder(lease)
        if holder and holder != self._identity:
            self._held_by(holder)
        return lease

    def create_namespaced_lease(self, namespace: str, body: client.V1Lease) -> client.V1Lease:
        return self._write(self._api.create_namespaced_lease, namespace, body)

    def replace_namespaced_lease(self, name: str, namespace: str, body: client.V1Lease) -> client.V1Lease:
        return self._write(self._api.replace_namespaced_lease, name, namespace, body)

    def give_back(self, name: str, namespace: str) -> None:
        # What is being written now is waited for: it would make it ours again.
        with self._writing:
            self._over = True
        try:
            lease = self._call(self._api.read_namespaced_lease, name, namespace)
            if lease.spec is not None and lease.spec.holder_identity == self._identity:
                lease.spec.holder_identity = ""
                self._call(self._api.replace_namespaced_lease, name, namespace, lease)
        except client.ApiException as error:
            if error.status not in (NOT_FOUND, CONFLICT):
                raise Unavailable(f"Lease {namespace}/{name} cannot be given back: {_reason(error)}") from error

    def _write(self, call: Callable[..., client.V1Lease], *what: object) -> client.V1Lease:
        with self._writing:
            # Before it is asked: how long it has held when the answer comes is not known.
            began_s = time.monotonic()
            written = self._ask(call, *what)
            self._renewed(began_s)
            return written

    def _ask(self, call: Callable[..., client.V1Lease], *what: object) -> client.V1Lease:
        if self._over:
            raise _OverError
        try:
            answer = self._call(call, *what)
        except client.ApiException as error:
            # Missing at first, and sometimes another was quicker.
            if error.status not in (NOT_FOUND, CONFLICT):
                self._say(error)
            raise
        if self._said:
            self._said.clear()
            logger.info("the Lease is reached again")
        return answer

    def _say(self, error: client.ApiException) -> None:
        # One that is away says it in other words at each attempt: no connection, no answer in time, 503.
        refuses = 400 <= error.status < 500
        if refuses not in self._said:
            self._said.add(refuses)
            logger.warning("the Lease is not reached: %s", _reason(error))

    def _call(self, call: Callable[..., client.V1Lease], *what: object) -> client.V1Lease:
        try:
            return call(*what, _request_timeout=self._timeout_s)
        except NOT_ASKED as error:
            raise client.ApiException(status=0, reason=str(error)) from error


def _holder(lease: client.V1Lease) -> str:
    return (lease.spec.holder_identity if lease.spec else None) or ""


def _reason(error: Any) -> str:
    return f"{error.status} {error.reason}" if error.status else str(error.reason)
