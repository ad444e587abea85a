"""The functions of the driver that the hook leaves alone, and why: cuda_hook/src/entry/left_alone.def, and its copy for
readers in docs/parts/cuda-hook.md, which `python -m tests.kit.hook.left_alone` writes anew."""

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
LIST = ROOT / "cuda_hook/src/entry/left_alone.def"
DOCUMENT = ROOT / "docs/parts/cuda-hook.md"
BEGIN, END = "<!-- from left_alone.def -->\n", "<!-- end -->\n"
KINDS = {"ORDERS": "Only orders", "MEMORY": "Has to do with device memory", "NEITHER": "Neither submits nor allocates"}


@dataclass(frozen=True)
class Group:
    """Functions that are left alone for one reason. ``does`` is one of KINDS."""

    does: str
    reason: str
    names: tuple[str, ...]


def groups() -> list[Group]:
    text = re.sub(r"/\*.*?\*/", "", LIST.read_text(), flags=re.DOTALL)
    found = []
    for part in text.split("ES_BECAUSE(")[1:]:
        does, _, rest = part.partition(",")
        quoted, _, members = rest.partition(")\n")
        reason = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', quoted))
        found.append(Group(does, reason, tuple(re.findall(r"ES_LEFT\((\w+)\)", members))))
    return found


def section() -> str:
    """The list as it stands in the document."""
    lines = []
    for does, said in KINDS.items():
        lines.append(f"### {said}\n")
        for group in groups():
            if group.does == does:
                names = ", ".join(f"`{name}`" for name in group.names)
                lines += textwrap.wrap(
                    f"- *{group.reason}*: {names}", 119, subsequent_indent="  ", break_long_words=False
                )
        lines.append("")
    return "\n".join(lines)


def documented() -> str:
    """What the document says now."""
    return DOCUMENT.read_text().partition(BEGIN)[2].partition(END)[0]


if __name__ == "__main__":
    before, _, rest = DOCUMENT.read_text().partition(BEGIN)
    DOCUMENT.write_text(f"{before}{BEGIN}{section()}{END}{rest.partition(END)[2]}")
