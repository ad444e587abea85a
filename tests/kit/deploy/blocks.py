"""The code blocks of the documents, and what commands are in those of a shell."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(.*)\n((?:.*\n)*?)^```$", re.MULTILINE)
INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
COMMENT = re.compile(r"(?:^|\s)#\s(.*)$")
MARK = "not tried"
"""In a comment: of a block's first line if it stands alone there, else of its own line."""

PUNCTUATION = "();<>|&"
"""What parts commands from each other, or with one of these from a file: `shlex` has a row of them as one word."""

REDIRECTION = frozenset("<>")
AROUND = frozenset({"do", "done", "then", "else", "fi", "if", "while", "{", "}", "!", "time"})
"""Words of the shell before a command, or in the place of one."""


@dataclass(frozen=True)
class Block:
    """One block of a page; its line is that of its fence."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def marked(self) -> bool:
        """Whether its first line says that nobody tried it."""
        first = self.text.partition("\n")[0]
        return first.startswith("#") and MARK in first


def blocks() -> list[Block]:
    """All of them, page by page."""
    found = []
    for page in PAGES:
        text = page.read_text()
        for match in BLOCK.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found.append(Block(str(page.relative_to(ROOT)), line, match[1], match[2]))
    return found


def inline() -> Iterator[tuple[str, str]]:
    """What stands in a page's sentences as code, and in which page."""
    for page in PAGES:
        for match in INLINE.finditer(BLOCK.sub("", page.read_text())):
            yield str(page.relative_to(ROOT)), match[1]


def typed(block: Block) -> str:
    """What of a block is typed: all of a script, of a console what follows the prompt."""
    if block.language != "console":
        return block.text
    lines, going_on = [], False
    for line in block.text.splitlines():
        if line.startswith("$ ") or going_on:
            lines.append(line.removeprefix("$ "))
            going_on = line.endswith("\\")
    return "\n".join(lines) + "\n"


def _lines(script: str) -> Iterator[str]:
    """Lines of a script, with those joined that a backslash or a quotation goes on over."""
    pending = ""
    for line in script.splitlines():
        pending += line
        if pending.endswith("\\"):
            pending = pending[:-1]
            continue
        try:
            shlex.split(pending, comments=True)
        except ValueError:
            pending += "\n"
            continue
        yield pending
        pending = ""
    if pending:
        raise ValueError(f"a quotation or a line does not end: {pending!r}")


def _words(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=PUNCTUATION)
    lexer.whitespace_split = True
    return list(lexer)


def _simple(words: list[str]) -> Iterator[list[str]]:
    """The simple commands in a line's words, without what they are redirected to, the shell's own words before them,
    and variables that are set for them."""
    command: list[str] = []
    redirected = False
    for word in [*words, ";"]:
        apart = not set(word) - set(PUNCTUATION)
        if apart and not REDIRECTION & set(word):
            while command and (command[0] in AROUND or re.match(r"\w+=", command[0])):
                command.pop(0)
            if command:
                yield command
            command = []
        elif redirected or apart:
            redirected = apart
        else:
            command.append(word)


def commands(script: str) -> Iterator[list[str]]:
    """The commands of a script, each as its words, those within `$(…)` among them. Left out is what a comment in its
    line says nobody tried, and what the script itself defines. Raises ValueError for a script that does not end."""
    defined = set(re.findall(r"^(\w+)\(\) \{", script, re.MULTILINE))
    for line in _lines(script):
        comment = COMMENT.search(line)
        if comment and MARK in comment[1]:
            continue
        for command in _simple(_words(line)):
            if command[0] not in defined:
                yield command
            for word in command:
                for within in re.findall(r"\$\(([^()]+)\)", word):
                    yield from commands(within)
