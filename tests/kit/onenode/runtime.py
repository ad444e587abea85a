"""The node's containerd: the pinned one, or the distribution's where that cannot be built."""

import textwrap
from pathlib import Path

from tests.kit.onenode.layout import CONTAINERD_SOCKET, RUN, SANDBOX_IMAGE, Layout
from tests.kit.processes.command import say
from tests.kit.processes.errors import NodeError
from tests.kit.programs.binaries import CONTAINERD, program

CNI_PLUGINS = Path("/usr/lib/cni")  # Debian's and Ubuntu's
DISTRIBUTIONS = Path("/usr/bin/containerd")
PATIENCE = "120s"
"""How long a containerd that starts waits for what looks after a container. Of one that has not answered within 5 s, as
on a machine that is busy, it takes the container for dead, and ends it."""


def command(layout: Layout, networks: Path) -> list[str | Path]:
    """A containerd of our own, configured: nothing of one that the machine may run is touched.

    `networks` is the folder of its CNI configurations.
    """
    try:
        containerd, shim = (program(CONTAINERD, name) for name in ("containerd", "containerd-shim-runc-v2"))
    except NodeError as error:
        say(f"the node runs {DISTRIBUTIONS}, too old for tests of CDI if older than 1.7.2: {error}")
        containerd, settings = DISTRIBUTIONS, _distributions(networks)
    else:
        settings = _pinned(networks, shim)
    config = layout.config / "containerd.toml"
    config.write_text(
        textwrap.dedent(f"""\
            root = "{layout.scratch / "containerd"}"
            state = "{RUN / "containerd"}"
            """)
        + settings
        + textwrap.dedent(f"""\
            [grpc]
            address = "{CONTAINERD_SOCKET}"
            [plugins."io.containerd.internal.v1.opt"]
            path = "{layout.scratch / "containerd-opt"}"
            [timeouts]
            "io.containerd.timeout.shim.load" = "{PATIENCE}"
            "io.containerd.timeout.task.state" = "{PATIENCE}"
            """)
    )
    return [containerd, "--config", config]


def _pinned(networks: Path, shim: Path) -> str:
    """For containerd 2."""
    return textwrap.dedent(f"""\
        version = 3
        [plugins."io.containerd.cri.v1.images".pinned_images]
        sandbox = "{SANDBOX_IMAGE}"
        [plugins."io.containerd.cri.v1.runtime"]
        # Without CAP_SYS_RESOURCE a score below the parent's is refused, and so is every sandbox.
        restrict_oom_score_adj = true
        [plugins."io.containerd.cri.v1.runtime".cni]
        bin_dirs = ["{CNI_PLUGINS}"]
        conf_dir = "{networks}"
        [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
        runtime_type = "io.containerd.runc.v2"
        # The one on the path is the distribution's, of another version.
        runtime_path = "{shim}"
        """)


def _distributions(networks: Path) -> str:
    """For containerd 1.6, as Debian 12 has it, and later."""
    return textwrap.dedent(f"""\
        version = 2
        [plugins."io.containerd.grpc.v1.cri"]
        sandbox_image = "{SANDBOX_IMAGE}"
        # As above.
        restrict_oom_score_adj = true
        # 1.6 does not know it, and runs on.
        enable_cdi = true
        [plugins."io.containerd.grpc.v1.cri".cni]
        bin_dir = "{CNI_PLUGINS}"
        conf_dir = "{networks}"
        """)
