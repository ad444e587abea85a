"""Which containerd the node runs, and that it takes the configuration that is written for it."""

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.kit.onenode.layout import SANDBOX_IMAGE, Layout
from tests.kit.onenode.runtime import DISTRIBUTIONS, command
from tests.kit.processes.command import run

GO_WITHOUT_NETWORK = """\
#!/bin/sh
[ "$1" = env ] && exec echo go1.99.0
echo "dial tcp: connect: network is unreachable" >&2
exit 1
"""


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path / "node")
    layout.config.mkdir(parents=True)
    return layout


@pytest.fixture
def nothing_can_be_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine with an empty cache, and a Go that cannot fetch modules."""
    go = tmp_path / "bin/go"
    go.parent.mkdir()
    go.write_text(GO_WITHOUT_NETWORK)
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{go.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("EDGESHARE_CACHE", str(tmp_path / "cache"))


def settings(layout: Layout) -> tuple[Path, dict[str, Any]]:
    """The node's containerd, and what that containerd itself says of each of its plugins' configuration."""
    containerd, *options = command(layout, layout.config / "cni")
    plugins: dict[str, Any] = tomllib.loads(run([containerd, *options, "config", "dump"]))["plugins"]
    return Path(containerd), plugins


def test_node_runs_the_pinned_containerd(layout: Layout) -> None:
    containerd, plugins = settings(layout)
    assert containerd != DISTRIBUTIONS
    assert plugins["io.containerd.cri.v1.images"]["pinned_images"]["sandbox"] == SANDBOX_IMAGE
    runtime = plugins["io.containerd.cri.v1.runtime"]
    assert runtime["restrict_oom_score_adj"]
    assert "/var/run/cdi" in runtime["cdi_spec_dirs"]
    assert runtime["containerd"]["runtimes"]["runc"]["runtime_path"] == str(
        containerd.with_name(f"{containerd.name}-shim-runc-v2")
    )


@pytest.mark.usefixtures("nothing_can_be_built")
@pytest.mark.skipif(not DISTRIBUTIONS.exists(), reason="the distribution's containerd is not installed")
def test_where_that_cannot_be_built_it_runs_the_distributions_and_says_so(
    layout: Layout, capsys: pytest.CaptureFixture[str]
) -> None:
    containerd, plugins = settings(layout)
    assert containerd == DISTRIBUTIONS
    # What containerd 1 calls them; 2 reads the file as well, and then calls them otherwise.
    cri = plugins.get("io.containerd.grpc.v1.cri") or plugins["io.containerd.cri.v1.runtime"]
    assert cri["restrict_oom_score_adj"]
    assert cri["cni"]["conf_dir"] == str(layout.config / "cni")
    said = capsys.readouterr().err
    assert str(DISTRIBUTIONS) in said
    assert "network is unreachable" in said
