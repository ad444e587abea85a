"""Certificates and keys as Secrets, of which the chart mounts the server's."""

import base64
import binascii
import re
from typing import Any

from edgeshare.contract.errors import InvalidRequest
from edgeshare.contract.object_names import NAME_MAX
from edgeshare.kube.kube import Kube
from edgeshare.kube.messages import Refused
from sharemgr.cluster.issuing.renewal import STATUS_LEAVES, Name, Stored

SUFFIXES = {Name.AUTHORITY: "-ca", Name.SERVER: "", Name.CLIENT: "-scheduler"} | {
    leaf: f"-{leaf}" for leaf in STATUS_LEAVES
}
"""What ends the Secrets' names, after the one that the chart is told of."""

TYPES = ("kubernetes.io/tls", "Opaque")
"""Kubernetes' own for such a pair, and what `kubectl create secret generic` makes."""
CERTIFICATE, KEY, AUTHORITY = "tls.crt", "tls.key", "ca.crt"

SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
"""Kubernetes' rule for such names, which bounds their length as a whole alone (apimachinery, util/validation)."""

FIRST = "make it once as somebody who may: edgeshare sharemgr certificates --apply"


class KubeSecrets:
    """The certificates' Secrets, in a namespace. Each is written only where it is as it was read."""

    def __init__(self, kube: Kube, namespace: str, name: str) -> None:
        """``name`` is the server's. Raises InvalidRequest where no Secret can be called so."""
        longest = f"{name}{max(SUFFIXES.values(), key=len)}"
        if len(longest) > NAME_MAX or not SUBDOMAIN.fullmatch(name):
            raise InvalidRequest(f"{name!r} is no name of a Secret: small letters, digits, '-' and '.'")
        self._kube = kube
        self._namespace = namespace
        self._name = name
        self._read: dict[Name, dict[str, Any]] = {}

    def read(self, name: Name) -> Stored | None:
        """See Place."""
        found = self._kube.object_at(f"{self._folder}/{self._called(name)}")
        if found is None:
            return None
        self._read[name] = found
        where, data = self._where(name), found.get("data") or {}
        if found.get("type") not in TYPES:
            kind = f"is of type {found.get('type')!r}, and edgeshare's of {TYPES[0]}"
            raise InvalidRequest(f"{where}: {kind}: it stays as it is; name another Secret")
        if set(data) != self._keys(name):
            wanted = ", ".join(sorted(self._keys(name)))
            raise InvalidRequest(f"{where}: has not {wanted} and nothing else: it stays as it is; name another Secret")
        content = {key: _decoded(f"{where}: {key}", value) for key, value in data.items()}
        return Stored(where, content[CERTIFICATE], content[KEY], content.get(AUTHORITY))

    def write(self, name: Name, certificate: bytes, key: bytes, authority: bytes) -> str:
        """See Place. Raises Conflicting where it was changed, or made, since it was read."""
        content = {CERTIFICATE: certificate, KEY: key, AUTHORITY: authority}
        data = {each: base64.b64encode(content[each]).decode() for each in sorted(self._keys(name))}
        before = self._read.get(name)
        if before is not None:
            self._kube.replace(f"{self._folder}/{self._called(name)}", {**before, "data": data})
            return self._where(name)
        metadata = {"name": self._called(name), "namespace": self._namespace}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": TYPES[0], "data": data}
        try:
            self._kube.create(self._folder, body)
        except Refused as error:
            raise Refused(f"{self._where(name)} is not there and cannot be made ({FIRST}): {error}") from error
        return self._where(name)

    @property
    def _folder(self) -> str:
        return f"/api/v1/namespaces/{self._namespace}/secrets"

    def _called(self, name: Name) -> str:
        return f"{self._name}{SUFFIXES[name]}"

    def _where(self, name: Name) -> str:
        return f"Secret {self._namespace}/{self._called(name)}"

    def _keys(self, name: Name) -> set[str]:
        return {CERTIFICATE, KEY} if name is Name.AUTHORITY else {CERTIFICATE, KEY, AUTHORITY}


def _decoded(where: str, value: object) -> bytes:
    try:
        return base64.b64decode(str(value), validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidRequest(f"{where}: is not base64: no API server has it so") from error
