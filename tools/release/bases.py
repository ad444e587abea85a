"""What images are made of: which they begin with, by the Dockerfile and what is said to its arguments."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from release.command import ReleaseError

DIGEST = re.compile(r"@(sha256:[0-9a-f]{64})$")
OF_THIS_MACHINE = "localhost/"
"""Begins the name of an image that no registry has."""

FROM = re.compile(r"^FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?\s*$", re.MULTILINE | re.IGNORECASE)
ARGUMENT = re.compile(r"^ARG\s+(\w+)=(\S+)\s*$", re.MULTILINE | re.IGNORECASE)
USED = re.compile(r"\$\{?(\w+)\}?")


@dataclass(frozen=True)
class Base:
    """An image that others begin with, and the Dockerfile's argument that names it; "": none does."""

    name: str
    argument: str

    @property
    def labels(self) -> dict[str, str]:
        """What an image that begins with it says of it (OCI image specification, "Pre-Defined Annotation Keys")."""
        found = DIGEST.search(self.name)
        said = {"org.opencontainers.image.base.name": self.name}
        return said | ({"org.opencontainers.image.base.digest": found[1]} if found else {})


def bases(dockerfile: str, options: Sequence[str]) -> Mapping[str, Base | None]:
    """What each stage of a Dockerfile begins with in the end; None: with nothing. `options` are those of the build.

    Raises ReleaseError where one is named without a digest: what its name means may be another image tomorrow.
    """
    values = dict(ARGUMENT.findall(dockerfile)) | dict(_arguments(options))
    found: dict[str, Base | None] = {"scratch": None}
    for words, stage in FROM.findall(dockerfile):
        used = USED.search(words)
        name = USED.sub(lambda match: values.get(match[1], ""), words)
        if name not in found:
            found[name] = _pinned(Base(name, used[1] if used else ""))
        found[stage or name] = found[name]
    return found


def _arguments(options: Sequence[str]) -> Iterable[tuple[str, str]]:
    """What `--build-arg` says, in either form."""
    words = " ".join(options).replace("--build-arg ", "--build-arg=").split()
    for word in words:
        if word.startswith("--build-arg="):
            name, _, value = word.removeprefix("--build-arg=").partition("=")
            yield name, value


def _pinned(base: Base) -> Base:
    if DIGEST.search(base.name) or base.name.startswith(OF_THIS_MACHINE):
        return base
    how = f'IMAGE_OPTIONS="--build-arg={base.argument}=NAME@sha256:…"' if base.argument else "in the Dockerfile"
    raise ReleaseError(
        f"the images begin with {base.name or 'nothing that is named'}, which may be another image tomorrow: "
        f"name it by its digest, {how}; `skopeo inspect` or `docker buildx imagetools inspect` says it"
    )
