"""The importer of the Kubernetes client (calls.py has its other half), which reads kubeconfig files for us. Loading it
takes 18 MiB, so who does without it does not import this."""

import os
import shutil
import ssl
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import urllib3
import yaml
from kubernetes import client, config
from kubernetes.config.kube_config import KubeConfigLoader, KubeConfigMerger

from edgeshare.contract.errors import Unavailable
from edgeshare.kube.messages import read_token

Authorization = Callable[[], str | None]

NO_TOKEN = (config.ConfigException, OSError, ValueError)
"""Raised where a token cannot be read."""
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
    if settings.ssl_ca_cert:
        _check_authority(settings.ssl_ca_cert)
    if "tokenFile" in user and not {"auth-provider", "token"} & user.value.keys():
        _read_anew(Path(user.path).parent / user["tokenFile"], settings)


def _check_authority(path: str) -> None:
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
