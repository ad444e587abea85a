"""Makes any text into what Kubernetes takes as the value, or as the name, of a label.

The models of devices are spelled so wherever they are named: in labels, and in the annotation `edge/gpu-model`."""

import re
from collections.abc import Iterable

LENGTH_MAX = 63
"""Of a value, and of a name after its prefix. (Kubernetes, apimachinery, util/validation.)"""

UNFIT = re.compile(r"[^A-Za-z0-9._-]+")


def label_value(text: str) -> str:
    """The text with a hyphen for what a label cannot hold, cut to 63 characters: ``Tesla-T4``. Empty when nothing is
    left, which is a valid value. A spelled text is spelled as itself."""
    return _fitted(text, LENGTH_MAX)


def label_names(texts: Iterable[str], before: str = "", after: str = "") -> dict[str, str]:
    """Each text → the name that stands for it, ``before`` and ``after`` included; those of which nothing is left have
    none. Two texts never get the same name: the one that needs no change keeps its own, the others get ``-2``, ``-3``.

    ``before`` is what stands ahead of the text in the name: a prefix that ends with a slash, or some of the name, or
    both. It has to leave room for the text, and ``after`` for being the end."""
    room = LENGTH_MAX - len(before.rpartition("/")[2]) - len(after)
    fitted = {text: _fitted(text, room) for text in texts}
    names: dict[str, str] = {}
    for text in sorted(fitted, key=lambda text: (text != fitted[text], text)):
        if fitted[text]:
            names[text] = _unused(fitted[text], room, names.values())
    return {text: f"{before}{name}{after}" for text, name in names.items()}


def _unused(name: str, room: int, used: Iterable[str]) -> str:
    taken = set(used)
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{_fitted(name, room - len(f'-{number}'))}-{number}"
    return found


def _fitted(text: str, length: int) -> str:
    # What is left at either end by the cut must not be there either.
    return UNFIT.sub("-", text).strip("._-")[:length].strip("._-")
