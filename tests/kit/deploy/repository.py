"""A repository with a copy of what a release is made of, and releases made in it."""

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]

VERSION = "0.2.0"
RELEASED = Path("dist") / f"edgeshare-{VERSION}"
PROGRAMS = {"git": "git", "buildah": "buildah"}
COPIED = (
    *("cuda_hook", "deploy", "deviceplugin", "edgeshare", "labeller", "sharemgr", "tools"),
    *(".gitignore", ".dockerignore"),
)
COMPILED = shutil.ignore_patterns("*.so", "__pycache__", "_core.c")
"""What a build leaves."""

# Images of metadata alone: how the real ones are built, the test of the image knows (tests/cluster/image).
DOCKERFILE = """
FROM scratch AS wheels
COPY packages /
FROM scratch AS node
ARG TARGETARCH
COPY --from=wheels node /
COPY --from=wheels base-$TARGETARCH /
FROM node AS cluster
COPY --from=wheels cluster /
"""
PLACE = "opt/edgeshare/lib/python3.11/site-packages"
DEBIAN = """
Package: libc6
Status: install ok installed
Architecture: {processor}
Source: glibc
Version: 2.36-9+deb12u14
Description: GNU C Library: Shared libraries
 Version: of a line that goes on, none of the package's.

Package: gone
Status: deinstall ok config-files
Architecture: all
Version: 1
"""
"""What dpkg writes down of two packages, one of which was taken away."""
OS_RELEASE = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nVERSION_ID="12"\nID=debian\n'
WHEEL = "as pip wheel left it"
WHEELS_SHA256 = hashlib.sha256(WHEEL.encode()).hexdigest()
OTHER_SHA256 = ("a" * 64, "b" * 64)
REQUIREMENTS = rf"""
first_package==1.2 ; sys_platform == 'linux' \
    --hash=sha256:{OTHER_SHA256[0]} \
    --hash=sha256:{OTHER_SHA256[1]}
second==3 \
    --hash=sha256:{OTHER_SHA256[0]} \
    --hash=sha256:{WHEELS_SHA256}
third==4 \
    --hash=sha256:{OTHER_SHA256[1]}
"""
STORAGE = """
[storage]
driver = "vfs"
graphroot = "{folder}/store"
runroot = "{folder}/run"
"""
WHO = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.com")


@dataclass(frozen=True)
class Repository:
    """A tree with its history; `env` is what programs run in there."""

    tree: Path
    helm: Path
    env: Mapping[str, str]

    def git(self, *words: str) -> str:
        """What git says."""
        done = subprocess.run(["git", *WHO, *words], cwd=self.tree, env=self.env, check=True, stdout=-1, text=True)
        return done.stdout.strip()

    def write(self, name: str, text: str) -> None:
        """A file of the tree."""
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def add_package(self, image: str, name: str, version: str) -> None:
        """One that the image of that target has, as pip leaves it."""
        metadata = f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\nLicense-Expression: Apache-2.0\n"
        self.write(f"packages/{image}/{PLACE}/{name.replace('-', '_')}-{version}.dist-info/METADATA", metadata)

    def commit(self) -> None:
        """All that is there."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message=More")

    def clone(self, tree: Path) -> "Repository":
        """Another of the same history."""
        self.git("clone", "--quiet", str(self.tree), str(tree))
        return Repository(tree, self.helm, self.env)

    def command(self, version: str) -> list[str | Path]:
        """What makes a release."""
        return [sys.executable, "-m", "release", f"--helm={self.helm}", "--", version]

    def release(self, version: str = VERSION, path: str | None = None) -> "subprocess.CompletedProcess[str]":
        """Make a release, with programs found on `path` alone where it is given."""
        env = {**self.env, "PYTHONPATH": str(self.tree / "tools"), **({} if path is None else {"PATH": path})}
        command = self.command(version)
        return subprocess.run(command, cwd=self.tree, env=env, check=False, capture_output=True, text=True)

    def released(self, version: str = VERSION) -> Path:
        """The folder of a release that is made well."""
        done = self.release(version)
        assert done.returncode == 0, done.stderr
        return Path(done.stdout.strip())


def refused(done: "subprocess.CompletedProcess[str]", repository: Repository) -> str:
    """The one line of a refusal."""
    assert done.returncode == 1
    assert done.stdout == ""
    assert not (repository.tree / "dist").exists()
    (line,) = done.stderr.splitlines()
    return line
