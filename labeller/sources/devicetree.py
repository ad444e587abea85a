"""The devicetree: its root, and the nodes of the names that were asked for."""

from collections.abc import Collection, Iterator

from edgeshare.contract.errors import Unavailable
from edgeshare.inventory.tree import DEVICETREE, Tree
from labeller.facts import DevicetreeNode

PLACES = (DEVICETREE, "/proc/device-tree")
"""The second is a link to the first on a machine, and may be all that is in a copy of one."""

DEPTH_MAX = 64
"""The kernel unpacks no deeper one. (Linux, drivers/of/fdt.c, FDT_MAX_DEPTH.)"""

NODES_MAX = 20_000
"""A Jetson's has some thousands."""

COMPATIBLE_BYTES_MAX = 4096
"""The longest of boards that we know have some 100 bytes."""

STRINGS_MAX = 256
"""Of all nodes together. A board's root has some four, and a processor or a GPU one or two."""


def look(tree: Tree, wanted: Collection[str]) -> tuple[DevicetreeNode, ...]:
    """The root, then the others by path; nothing on a machine without a devicetree. Raises Unavailable.

    A wanted name fits a node with and without its unit address: ``gpu`` fits ``gpu@57000000``."""
    base = place(tree)
    if base is None:
        return ()
    found = [DevicetreeNode("", root_compatible(tree, base))]
    for number, path in enumerate(_nodes(tree, base, DEPTH_MAX)):
        if number >= NODES_MAX:
            raise Unavailable(f"{base} has more than {NODES_MAX} nodes: no machine has so many devices")
        full_name = path.rpartition("/")[2]
        name = full_name.partition("@")[0]
        if name in wanted or full_name in wanted:
            found.append(DevicetreeNode(name, _compatible(tree, path)))
    if len({string for node in found for string in node.compatible}) > STRINGS_MAX:
        raise Unavailable(f"{base} names more than {STRINGS_MAX} compatible strings: no machine has so many")
    return tuple(found)


def place(tree: Tree) -> str | None:
    """Where the devicetree is; None where there is none. Raises Unavailable."""
    return next((path for path in PLACES if tree.is_folder(path)), None)


def root_compatible(tree: Tree, base: str) -> tuple[str, ...]:
    """What the machine is, most exact first; nothing where the kernel made up an empty tree, as it does on a PC (Linux,
    drivers/of/empty_root.dts). Raises Unavailable."""
    found = _compatible(tree, base)
    if not found and tree.exists(f"{base}/model"):
        raise Unavailable(f"{base} has a model but no compatible string: it is not whole")
    return found


def _compatible(tree: Tree, path: str) -> tuple[str, ...]:
    content = tree.read(f"{path}/compatible") or b""
    if len(content) > COMPATIBLE_BYTES_MAX:
        raise Unavailable(f"{path}/compatible is longer than {COMPATIBLE_BYTES_MAX} bytes: no board has so many names")
    if content and not content.endswith(b"\0"):
        raise Unavailable(f"{path}/compatible does not end with a zero: it is cut off")
    return tree.strings(f"{path}/compatible")


def _nodes(tree: Tree, path: str, depth: int) -> Iterator[str]:
    """All nodes below one, parents first."""
    for name in tree.folders(path):
        if not depth:
            raise Unavailable(f"{path} is more than {DEPTH_MAX} nodes deep: no kernel has such a devicetree")
        yield f"{path}/{name}"
        yield from _nodes(tree, f"{path}/{name}", depth - 1)
