"""How a command of the documents is held to its program: by the program's own parser, or by what it says of itself."""

import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import click

from edgeshare.cli import cli
from tests.kit.deploy.blocks import ROOT

CHART = "deploy/chart"
RENDERED = {
    "--set": 1,
    "--set-string": 1,
    "--set-json": 1,
    "--values": 1,
    "-f": 1,
    "--namespace": 1,
    "--create-namespace": 0,
}
"""Options of Helm that say what becomes of a chart → how many words follow."""

SUBCOMMANDS = frozenset({"auth", "create", "rollout", "secret"})
"""Commands of kubectl that have some of their own."""

STANDARD = frozenset(
    {
        "base64",
        "cat",
        "cd",
        "curl",
        "echo",
        "eval",
        "for",
        "grep",
        "grpcurl",
        "mkdir",
        "pip",
        "sed",
        "sha256sum",
        "skopeo",
        "umask",
    }
)
"""The shell's own and what is on every machine, which are not held to anything; what `pip` installs, `skopeo` copies
and `grpcurl` asks other tests do (`tests/unit/test_wheel.py`, `tests/deploy/release`, `tests/assigner/status`)."""


@dataclass(frozen=True)
class Tools:
    """The programs of the tests."""

    helm: Path
    kubectl: Path


def edgeshare(words: list[str], _tools: Tools) -> str:
    """What is wrong with a command of ours, by its own parser."""
    command: click.Command = cli
    rest = words[1:]
    context = click.Context(command)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        found = command.get_command(context, rest[0])
        if found is None:
            return f"there is no command {rest[0]}"
        command = found
        rest = rest[1:]
    if isinstance(command, click.Group) and rest and rest[0] not in ("--help", "--version"):
        return f"{rest[0]} is no option of it"
    try:
        # Values stay unchecked: files that it names are somebody's.
        command.make_parser(click.Context(command, **command.context_settings)).parse_args(list(rest))
    except click.UsageError as error:
        return error.format_message()
    return ""


@cache
def _help(program: Path, *words: str) -> str:
    return subprocess.run([program, *words], capture_output=True, text=True, check=True, cwd=ROOT).stdout


def _unknown(options: list[str], told: str) -> str:
    """Which of the options a help does not know."""
    names = [each.partition("=")[0] for each in options]
    lacking = [each for each in names if not re.search(rf"(?<![\w-]){re.escape(each)}(?![\w-])", told)]
    return f"it has no {', '.join(lacking)}" if lacking else ""


def _options(words: list[str]) -> list[str]:
    """The options among a command's words, short ones that are written as one apart, up to `--`."""
    ours = words[: words.index("--")] if "--" in words else words
    long = [word for word in ours if re.match(r"--\w", word)]
    return long + [f"-{letter}" for word in ours if re.fullmatch(r"-[a-z]+", word) for letter in word[1:]]


def kubectl(words: list[str], tools: Tools) -> str:
    """What is wrong with a command of kubectl, by its help."""
    rest = words[1:]
    while rest and rest[0] == "--namespace":
        rest = rest[2:]
    if rest and rest[0] == "edgeshare":
        return edgeshare(rest, tools)
    if rest and rest[0] == "exec" and (wrong := wrong_with(rest[rest.index("--") + 1 :], tools)):
        return wrong
    verbs = rest[:1]
    while verbs and verbs[-1] in SUBCOMMANDS:
        verbs.append(rest[len(verbs)])
    try:
        told = _help(tools.kubectl, *verbs, "--help") + _help(tools.kubectl, "options")
    except subprocess.CalledProcessError as error:
        return str(error.stderr)
    return _unknown(_options(words), told) if "Usage:" in told else f"there is no kubectl {' '.join(verbs)}"


def values_given(words: list[str]) -> list[str]:
    """What a command of Helm says of what becomes of the chart, as options of `helm template`."""
    return [each for at, word in enumerate(words) if word in RENDERED for each in words[at : at + 1 + RENDERED[word]]]


def helm(words: list[str], tools: Tools) -> str:
    """What is wrong with a command of Helm: an option that it has not, or values that the chart refuses."""
    wrong = _unknown(_options(words), _help(tools.helm, words[1], "--help"))
    # A sentence may leave out release and chart.
    if wrong or words[1] not in ("install", "upgrade") or len(words) < len(("helm", "install", "RELEASE", "CHART")):
        return wrong
    if words[3] != CHART and not re.fullmatch(r"oci://REGISTRY/charts/edgeshare", words[3]):
        return f"{words[3]} is not our chart: say in a comment that it was {'not tried'}"
    line = [str(tools.helm), "template", words[2], CHART, "--kube-version=1.36.0", *values_given(words)]
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=ROOT)
    return done.stderr


def make(words: list[str], _tools: Tools) -> str:
    """What is wrong with a command of make: a target or a variable that the Makefile has not."""
    makefile = (ROOT / "Makefile").read_text()
    known = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE)) | set(re.findall(r"\b([A-Z_]+)\b", makefile))
    lacking = [word for word in words[1:] if word.partition("=")[0] not in known]
    return f"the Makefile has no {', '.join(lacking)}" if lacking else ""


def python(words: list[str], _tools: Tools) -> str:
    """What is wrong with a run of a module of ours: it is not there, or knows nothing of an option."""
    if words[1] != "-m":
        return f"{words[1]} is run as a module: python -m"
    path = ROOT / f"{words[2].replace('.', '/')}.py"
    if not path.is_file():
        return f"{words[2]} is not there"
    return _unknown(_options(words[3:]), path.read_text())


def burn(words: list[str], _tools: Tools) -> str:
    """What is wrong with a run of simgpu's own CUDA program, by its source: it starts only with a driver."""
    return _unknown(_options(words), (ROOT / "simgpu/workload/options.c").read_text())


CHECKED: dict[str, Callable[[list[str], Tools], str]] = {
    "simgpu/bin/burn": burn,
    "edgeshare": edgeshare,
    "helm": helm,
    "kubectl": kubectl,
    "make": make,
    "python": python,
}


def wrong_with(words: list[str], tools: Tools) -> str:
    """What is wrong with a command; nothing, of one that is right."""
    if words[0] in STANDARD:
        return ""
    check = CHECKED.get(words[0])
    return check(words, tools) if check else f"nobody says how {words[0]} is checked"
