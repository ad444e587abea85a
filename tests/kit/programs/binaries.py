"""The programs that no distribution packages at the version we need, built from pinned Go modules."""

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

from tests.kit.processes.command import run, say
from tests.kit.programs.cache import cache_dir, make_once
from tests.kit.programs.golang import go_program

MODULES = Path(__file__).parent / "modules"


@dataclass(frozen=True)
class Module:
    """A folder of `modules/` whose go.mod pins what is built there.

    `takes` says how long a first build of them all is on 2 cores, `stamps` which variables hold the version.
    """

    folder: str
    requires: str
    programs: dict[str, str]
    takes: str
    stamps: str = ""

    @property
    def version(self) -> str:
        """The version that go.mod pins, without its `v`."""
        text = (MODULES / self.folder / "go.mod").read_text()
        match = re.search(rf"^(?:require )?\s*{re.escape(self.requires)} v(\S+)", text, re.MULTILINE)
        assert match, f"{MODULES / self.folder / 'go.mod'} requires no {self.requires}"
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
    takes="7 minutes",
    stamps="k8s.io/component-base/version",
)
KUBELET_OLDEST = Module(
    "kubelet-oldest",
    "k8s.io/kubernetes",
    {"kubelet": "k8s.io/kubernetes/cmd/kubelet"},
    takes="4 minutes",
    stamps="k8s.io/component-base/version",
)
KUBELETS = (KUBERNETES, KUBELET_OLDEST)
"""Where a kubelet comes from, the newest first. An API server serves kubelets of three minor versions before its."""

CONTAINERD = Module(
    "containerd",
    "github.com/containerd/containerd/v2",
    {name: f"github.com/containerd/containerd/v2/cmd/{name}" for name in ("containerd", "containerd-shim-runc-v2")},
    takes="3 minutes",
)
HELM = Module("helm", "helm.sh/helm/v3", {"helm": "helm.sh/helm/v3/cmd/helm"}, takes="a minute")
GRPCURL = Module(
    "grpcurl",
    "github.com/fullstorydev/grpcurl",
    {"grpcurl": "github.com/fullstorydev/grpcurl/cmd/grpcurl"},
    takes="a minute",
)
CDI = Module(
    "cdi",
    "github.com/container-orchestrated-devices/container-device-interface",
    {"validate": "github.com/container-orchestrated-devices/container-device-interface/cmd/validate"},
    takes="a minute",
)
KWOK = Module("kwok", "sigs.k8s.io/kwok", {"kwok": "sigs.k8s.io/kwok/cmd/kwok"}, takes="2 minutes")


def program(module: Module, name: str) -> Path:
    """Where the program `name` of `module` is, built first where the cache has none. Raises NodeError."""
    version = module.version

    def build(target: Path) -> None:
        say(f"building {name} {version} (once; about {module.takes} for all of {module.folder} on 2 cores) …")
        started_s = time.monotonic()
        flags = "-s -w"
        if module.stamps:
            major, minor, _ = version.split(".", 2)
            for variable, value in (("gitVersion", f"v{version}"), ("gitMajor", major), ("gitMinor", minor)):
                flags += f" -X {module.stamps}.{variable}={value}"
        run(
            [go_program(), "build", "-trimpath", "-ldflags", flags, "-o", target, module.programs[name]],
            cwd=MODULES / module.folder,
            # Static, so that one cache serves machines with different C libraries. A compiler's heap is gigabytes, and
            # must not be five times that, as the tests have it of small programs (daemons.GO).
            env={**os.environ, "CGO_ENABLED": "0", "GOGC": "100"},
        )
        say(f"built {name} {version} in {time.monotonic() - started_s:.0f} s")

    return make_once(cache_dir() / f"{module.folder}-{version}" / name, build)
