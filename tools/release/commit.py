"""The commit that is released."""

from dataclasses import dataclass
from pathlib import Path

from release.command import ReleaseError, said
from release.version import of_tag

NAMED = 3
"""So many changed files are named."""


@dataclass(frozen=True)
class Commit:
    """What git has at HEAD of the tree at `root`; `made_s` is when it was made, since the epoch."""

    root: Path
    digest: str
    made_s: int

    def archive(self, path: Path) -> None:
        """Write its files as a tar, whose times are the commit's."""
        said(["git", "archive", "--format=tar", f"--output={path}", self.digest], self.root)


def releasable(root: Path, version: str) -> Commit:
    """The commit at HEAD. Raises ReleaseError where the tree holds something else, or a tag denies `version`."""

    def git(*words: str) -> str:
        return said(["git", *words], root).strip()

    if git("rev-parse", "--show-prefix"):
        raise ReleaseError(f"{root} is no repository but a folder of one: make the release in a clone")
    changes = git("status", "--porcelain").splitlines()
    if changes:
        names = [line.split(maxsplit=1)[1] for line in changes]
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        raise ReleaseError(
            f"not committed: {', '.join(names[:NAMED])}{more}: commit it, or put it away by git stash -u"
        )
    tags = [tag for tag in git("tag", "--points-at", "HEAD").splitlines() if of_tag(tag)]
    if tags and version not in map(of_tag, tags):
        raise ReleaseError(f"VERSION={version}, but this commit is tagged {', '.join(tags)}: release what the tag says")
    others = [tag for tag in git("tag", "--list", version, f"v{version}").splitlines() if tag not in tags]
    if others:
        raise ReleaseError(f"VERSION={version}, but {others[0]} is another commit: check it out, or take a new version")
    digest, made_s = git("log", "-1", "--format=%H %ct").split()
    return Commit(root, digest, int(made_s))
