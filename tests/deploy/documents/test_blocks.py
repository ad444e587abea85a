"""Every command and manifest of the documents is one that its program takes, or says that nobody tried it.

A block's language says how it is looked at; what is neither command nor manifest is `text`. Some blocks are run
besides, by the tests of what they are about.
"""

import ast
import importlib
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.apiserver.api_server import ApiServer
from tests.kit.deploy.blocks import MARK, Block, blocks, commands, inline, typed
from tests.kit.deploy.manifests import Manifests
from tests.kit.deploy.programs import Tools, wrong_with
from tests.kit.programs.binaries import KUBERNETES, program

ALL = blocks()
OURS = ("edgeshare ", "make ", "kubectl ", "helm ")
"""What is looked at in sentences, too: what is a command, and complete."""

ELIDED = ("…", "...", "[")


@pytest.fixture(scope="module")
def tools(helm: Path) -> Tools:
    return Tools(helm, program(KUBERNETES, "kubectl"))


@pytest.fixture(scope="module")
def manifests(helm: Path, installed: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Manifests:
    return Manifests(installed, helm, tmp_path_factory.mktemp("manifests"))


def wrong_in_shell(block: Block, tools: Tools) -> list[str]:
    """What is wrong with the commands of a block."""
    script = typed(block)
    done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
    told = [(words, wrong_with(words, tools)) for words in commands(script)]
    return [*done.stderr.splitlines(), *(f"{' '.join(words)}: {wrong}" for words, wrong in told if wrong)]


def wrong_in_python(block: Block) -> list[str]:
    """What a block imports that is not there. Raises SyntaxError."""
    lacking = []
    for node in ast.walk(ast.parse(block.text)):
        if isinstance(node, ast.ImportFrom):
            module = importlib.import_module(node.module or "")
            lacking += [alias.name for alias in node.names if not hasattr(module, alias.name)]
    return lacking


def wrong_in_text(block: Block) -> list[str]:
    """Lines of what is no command and no manifest, that look like one."""
    return [line for line in block.text.splitlines() if line.startswith(("$ ", "apiVersion:", *OURS))]


@pytest.fixture(scope="module")
def checks(tools: Tools, request: pytest.FixtureRequest) -> dict[str, Callable[[Block], list[str]]]:
    """A block's language → what is wrong with it."""

    def wrong_in_yaml(block: Block) -> list[str]:
        # Only these need an API server.
        found: Manifests = request.getfixturevalue("manifests")
        return found.wrong_with(block.text)

    return {
        "sh": lambda block: wrong_in_shell(block, tools),
        "console": lambda block: wrong_in_shell(block, tools),
        "yaml": wrong_in_yaml,
        "python": wrong_in_python,
        "text": wrong_in_text,
    }


def test_each_says_what_it_is(checks: dict[str, Callable[[Block], list[str]]]) -> None:
    assert len(ALL) > 80
    assert [str(block) for block in ALL if block.language not in checks] == []


@pytest.mark.parametrize("block", ALL, ids=str)
def test_each_is_taken_by_its_program_or_says_that_nobody_tried_it(
    block: Block, checks: dict[str, Callable[[Block], list[str]]]
) -> None:
    assert block.marked or checks[block.language](block) == []


def test_commands_in_sentences_are_taken_by_their_program(tools: Tools) -> None:
    whole = [(page, code) for page, code in inline() if code.startswith(OURS) and not any(e in code for e in ELIDED)]
    assert len(whole) > 80
    told = [(page, code, wrong_with(words, tools)) for page, code in whole for words in commands(code)]
    # A sentence may name an option without its value.
    assert [each for each in told if each[2] and not each[2].endswith("requires an argument.")] == []


@pytest.mark.parametrize(
    ("language", "text", "told"),
    [
        ("sh", "edgeshare run --percentage 3 -- true\n", "No such option"),
        ("sh", "edgeshare statuses\n", "there is no command statuses"),
        ("sh", "x=$(edgeshare top --wep)\n", "No such option"),
        ("console", "$ edgeshare status --jsn\nfine\n", "No such option"),
        ("sh", "helm install edgeshare deploy/chart --set labeler.enabled=false\n", "labeler"),
        (
            "sh",
            "helm install edgeshare deploy/chart \\\n  --set image.repository=a --crate-namespace\n",
            "--crate-namespace",
        ),
        ("sh", "helm install gpu-operator nvidia/gpu-operator\n", "is not our chart"),
        ("sh", "kubectl get pods | kubectl aply --filename=-\n", "aply"),
        ("sh", "kubectl get pods --selectr=a\n", "--selectr"),
        ("sh", "kubectl exec daemonset/a -- edgeshare status --jsn\n", "No such option"),
        ("sh", "make manifests\n", "manifests"),
        ("sh", "python -m tests.kit.virtual.cases.explore --frist 3\n", "--frist"),
        ("sh", "docker build .\n", "nobody says how docker is checked"),
        ("sh", "for i in 1; do echo; fi\n", "syntax error"),
        ("python", "from simgpu.machine import Machin\n", "Machin"),
        ("text", "kubectl get pods\n", "kubectl get pods"),
        ("yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {container: []}\n", "container"),
        (
            "yaml",
            "apiVersion: cert-manager.io/v1\nkind: Issuer\nmetadata: {name: a}\nspec: {selfSined: {}}\n",
            "selfSined",
        ),
        ("yaml", "stateDirectory: /a\n", "stateDirectory"),
        ("yaml", "stateDir: relative\n", "stateDir"),
        ("yaml", "rescan_s: often\n", "rescan_s"),
        ("yaml", "resources:\n  limits:\n    edge/gpu-percent: 130\n", "130"),
        ("yaml", "status:\n  devices:\n    - {id: a, helthy: true}\n", "helthy"),
    ],
)
def test_what_is_wrong_is_found(
    language: str, text: str, told: str, checks: dict[str, Callable[[Block], list[str]]]
) -> None:
    assert told in "\n".join(checks[language](Block("page", 1, language, text)))


def test_a_mark_is_of_a_whole_block_or_of_its_own_line() -> None:
    assert Block("page", 1, "sh", f"# {MARK}: a chart of others\nhelm x\n").marked
    assert not Block("page", 1, "sh", f"helm x  # {MARK}\nhelm y\n").marked
    assert list(commands(f"helm x  # {MARK}\nhelm y  # a word\n")) == [["helm", "y"]]


def test_commands_are_found_wherever_a_shell_has_them() -> None:
    script = """A=1 one --x \\
  --y 'a
b' >file && { two | three; } &
for each in $(four); do five "$(six --z)"; done
own() { seven; }
own
"""
    names = ["one", "two", "three", "for", "four", "five", "six", "seven"]
    assert [words[0] for words in commands(script)] == names
    assert next(commands(script)) == ["one", "--x", "--y", "a\nb"]
