"""Who calls, and whether he may know: both as the API server says, and remembered for a short time."""

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from edgeshare.contract.errors import EdgeshareError, Forbidden, Unauthenticated, Unavailable
from edgeshare.contract.object_names import NAME_MAX
from edgeshare.contract.text import in_one_line
from edgeshare.kube.calls import Calls
from edgeshare.kube.faults import first_fault
from edgeshare.kube.messages import Refused
from sharemgr.cluster.status.query import Query

FRESH_S = 60.0
"""How long what the API server said is gone by; kube-apiserver itself goes by what a webhook said for longer
(--authentication-token-webhook-cache-ttl 2m, --authorization-webhook-cache-authorized-ttl 5m)."""

REFUSED_S = 5.0
"""How long a refusal of the API server is gone by: a right that was just given counts soon."""

AWAY_S = 900.0
"""While the API server does not answer, who was let in before stays so for that long: what he follows he may follow
through its restart."""

KNOWN_MAX = 1024
"""Of whom it is remembered; the oldest are asked for anew."""

REVIEWS_MAX = 8
"""At a time: whoever reaches the port may ask for one."""

TOKEN_MAX = 16 << 10
"""Characters."""

SCHEME = "bearer "

TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

NO_TOKEN = "there is no token: send 'authorization: Bearer TOKEN', as of `kubectl create token`"
NO_SUCH_TOKEN = "the API server does not know this token: it is of another cluster, or holds no more"


Review = TypeVar("Review", bound=BaseModel)


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class _User(_Part):
    username: str = ""
    uid: str = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}


class _Token(_Part):
    authenticated: bool = False
    user: _User = _User()


class _Access(_Part):
    allowed: bool = False


class _TokenReview(_Part):
    status: _Token


class _AccessReview(_Part):
    status: _Access


@dataclass(frozen=True, slots=True)
class _Verdict:
    at_s: float
    refusal: EdgeshareError | None


def token_of(metadata: Any) -> str:
    """The token of a call. Raises Unauthenticated where there is none that could be one."""
    found = [value for key, value in metadata or () if key == "authorization"]
    if len(found) != 1 or not isinstance(found[0], str) or not found[0].lower().startswith(SCHEME):
        raise Unauthenticated(NO_TOKEN)
    token = found[0][len(SCHEME) :].strip()
    if not token or not token.isascii() or not token.isprintable() or len(token) > TOKEN_MAX:
        raise Unauthenticated(NO_TOKEN)
    return token


class Rights:
    """The rights of all who call."""

    def __init__(self, calls: Calls, clock: Callable[[], float] = monotonic) -> None:
        self._calls = calls
        self._clock = clock
        self._known: dict[tuple[bytes, Query], _Verdict] = {}
        """By a hash of the token, which is not kept; the oldest first."""
        self._reviews = asyncio.Semaphore(REVIEWS_MAX)

    async def check(self, token: str, query: Query) -> None:
        """Raises Unauthenticated or Forbidden where that is not to be answered, Unavailable where nobody knows."""
        key = hashlib.sha256(token.encode()).digest(), query
        known = self._known.get(key)
        if known is None or self._clock() >= known.at_s + (FRESH_S if known.refusal is None else REFUSED_S):
            known = await self._review(token, query, known)
            self._known.pop(key, None)
            self._known[key] = known
            if len(self._known) > KNOWN_MAX:
                del self._known[next(iter(self._known))]
        if known.refusal is not None:
            # Another each time: one that is raised again and again would grow by each one's traceback.
            raise type(known.refusal)(str(known.refusal))

    async def _review(self, token: str, query: Query, before: _Verdict | None) -> _Verdict:
        try:
            async with self._reviews:
                user = await self._user(token)
                if not await self._may(user, query):
                    raise Forbidden(_refusal(user.username, query))
            return _Verdict(self._clock(), None)
        except (Unauthenticated, Forbidden) as error:
            return _Verdict(self._clock(), error)
        except Refused:
            # It is there, and does not let the cluster part ask.
            raise
        except Unavailable:
            if before is None or before.refusal is not None or self._clock() >= before.at_s + AWAY_S:
                raise
            # As of before, so that it is asked again at the next call.
            return before

    async def _user(self, token: str) -> _User:
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        told = _parsed(_TokenReview, await self._calls.call("POST", TOKEN_REVIEWS, body)).status
        if not told.authenticated:
            raise Unauthenticated(NO_SUCH_TOKEN)
        return told.user

    async def _may(self, user: _User, query: Query) -> bool:
        asked = {"verb": "get" if query.pod else "list", "resource": "pods", "namespace": query.namespace}
        spec = {
            **{"user": user.username, "uid": user.uid, "groups": user.groups, "extra": user.extra},
            "resourceAttributes": {**asked, "name": query.pod},
        }
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        return _parsed(_AccessReview, await self._calls.call("POST", ACCESS_REVIEWS, body)).status.allowed


def _refusal(user: str, query: Query) -> str:
    who = in_one_line(user, NAME_MAX)
    if query.pod:
        return f"{who} may not get {query}: give it that right (get pods), or ask of another"
    where = f"in {query}" if query.namespace else "of all namespaces: name one"
    return f"{who} may not list the pods {where}, or give it that right (list pods)"


def _parsed(model: type[Review], answer: object) -> Review:
    try:
        return model.model_validate(answer)
    except ValidationError as error:
        raise Unavailable(f"what reviews a token is no API server: {first_fault(error)}") from error
