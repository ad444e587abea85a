"""A Jetson: its devicetree, its memory, and its release of Jetson Linux."""

import re

from edgeshare.contract.errors import Unavailable
from edgeshare.inventory.boards import is_tegra, parse_memory
from edgeshare.inventory.tree import Tree, shown
from labeller.facts import JetsonFacts
from labeller.sources import devicetree

RELEASE_FILE = "/etc/nv_tegra_release"

RELEASE = re.compile(
    rb"(?:# ?)?R([0-9]{1,4}) \([^)\n]{0,60}\), REVISION: ?([0-9]{1,4}(?:\.[0-9]{1,4}){1,3})(?=[,\s]|$)"
)
"""The first line: ``# R32 (release), REVISION: 4.3, GCID: 21589087, BOARD: t210ref, EABI: aarch64, DATE: …``, from R21
on a TK1 (BOARD ardbeg, EABI hard) to R38 on Thor (BOARD generic, and more lines below). (NVIDIA's jetson-inference,
tools/install-pytorch.sh, cites R28; users' dumps in public repositories have the others.)"""


def look(tree: Tree) -> JetsonFacts | None:
    """None on a machine with no Tegra. Raises Unavailable."""
    base = devicetree.place(tree)
    compatible = () if base is None else devicetree.root_compatible(tree, base)
    if not is_tegra(compatible):
        return None
    memory = tree.read("/proc/meminfo")
    return JetsonFacts(
        compatible=compatible,
        model=tree.line(f"{base}/model") or "",
        release=_release(tree.read(RELEASE_FILE)),
        memory_mib=0 if memory is None else parse_memory(memory).total_mib,
    )


def _release(content: bytes | None) -> str:
    """``32.4.3``; empty where there is no such file, as on systems that others than NVIDIA built."""
    if content is None:
        return ""
    found = RELEASE.match(content)
    if found is None:
        raise Unavailable(
            f"{RELEASE_FILE} begins with {shown(content[:60].decode('latin-1'))}, not with a release and a revision: "
            "install nvidia-l4t-core anew, or remove the file"
        )
    return f"{found[1].decode()}.{found[2].decode()}"
