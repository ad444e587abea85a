"""The programs that no distribution packages at the version we need, built from pinned Go modules."""

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

from onenode.cache import cache_dir, make_once
from onenode.command import run, say
from onenode.golang import go_program

TOOLS = Path(__file__).parent.parent / "tools"


@dataclass(frozen=True)
class Module:
    """A folder of `tools/` whose go.mod pins what is built there.

    `minutes` is about what a first build takes on 2 cores; `stamps` says which variables hold the version.
    """

    folder: str
    requires: str
    programs: dict[str, str]
    minutes: int
    stamps: str = ""

    @property
    def version(self) -> str:
        """The version that go.mod pins, without its `v`."""
        text = (TOOLS / self.folder / "go.mod").read_text()
        match = re.search(rf"^(?:require )?\s*{re.escape(self.requires)} v(\S+)", text, re.MULTILINE)
        assert match, f"{TOOLS / self.folder / 'go.mod'} requires no {self.requires}"
        return match[1]


KUBERNETES = Module(
    "kubernetes",
    "k8s.io/kubernetes",
    {
        name: f"k8s.io/kubernetes/cmd/{name}"
        for name in (
            "kubelet",
            "kube-apiserver",
            "kube-controller-manager",
            "kube-scheduler",
            "kubectl",
            "kube-proxy",
        )
    },
    minutes=7,
    stamps="k8s.io/component-base/version",
)
HELM = Module("helm", "helm.sh/helm/v3", {"helm": "helm.sh/helm/v3/cmd/helm"}, minutes=1)
GRPCURL = Module(
    "grpcurl",
    "github.com/fullstorydev/grpcurl",
    {"grpcurl": "github.com/fullstorydev/grpcurl/cmd/grpcurl"},
    minutes=1,
)


def program(module: Module, name: str) -> Path:
    """Where the program `name` of `module` is, built first where the cache has none. Raises NodeError."""
    version = module.version

    def build(target: Path) -> None:
        say(
            f"building {name} {version} (once; all of {module.folder} takes about {module.minutes} minutes "
            "on 2 cores) …"
        )
        started_s = time.monotonic()
        flags = "-s -w"
        if module.stamps:
            major, minor, _ = version.split(".", 2)
            for variable, value in (("gitVersion", f"v{version}"), ("gitMajor", major), ("gitMinor", minor)):
                flags += f" -X {module.stamps}.{variable}={value}"
        run(
            [go_program(), "build", "-trimpath", "-ldflags", flags, "-o", target, module.programs[name]],
            cwd=TOOLS / module.folder,
            # Static, so that one cache serves machines with different C libraries.
            env={**os.environ, "CGO_ENABLED": "0"},
        )
        say(f"built {name} {version} in {time.monotonic() - started_s:.0f} s")

    return make_once(cache_dir() / f"{module.folder}-{version}" / name, build)
