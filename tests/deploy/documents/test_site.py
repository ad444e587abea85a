"""The site that `make docs` makes of docs/ is whole, and needs nobody but itself."""

import re
import shutil
import subprocess
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
import sphinx
from sphinx.application import builtin_extensions

from tests.kit.processes import forked

DOCS = Path(__file__).parents[3] / "docs"
SPHINX = str(Path(sphinx.__file__).with_name("__main__.py"))
LOADED = ("sphinx.cmd.build", *builtin_extensions, "myst_parser.sphinx_ext.main", "furo", "pygments.styles.monokai")
"""Four fifths of what a site of two pages takes."""
END_S = 300  # a safety limit
LOADS = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "object": "data"}
"""Which elements have a browser load something, and by which attribute."""
OUTSIDE = re.compile(r"(?:https?:)?//")
IN_STYLES = re.compile(r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')\s]+)""")


def built(docs: Path, where: Path) -> "subprocess.CompletedProcess[str]":
    """What became of `make docs` for a folder like docs/."""
    options = ("-q", "-W", "--keep-going", "-d", str(where / "trees"))
    return forked.run([*options, str(docs), str(where / "site")], END_S, program=(SPHINX,), loaded=LOADED)


@dataclass
class Page(HTMLParser):
    """What a page loads, where its links lead, and what in it can be linked to."""

    loads: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value is not None}
        if "id" in values:
            self.names.add(values["id"])
        if LOADS.get(tag, "") in values:
            self.loads.append(values[LOADS[tag]])
        if tag == "a" and "href" in values:
            self.links.append(values["href"])


def read(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text())
    return page


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Page]:
    """Each page of the site, by where it lies."""
    where = tmp_path_factory.mktemp("docs")
    made = built(DOCS, where)
    assert (made.returncode, made.stderr) == (0, "")
    return {path: read(path) for path in (where / "site").rglob("*.html")}


def top(site: dict[Path, Page]) -> Path:
    return next(path for path in site if path.name == "index.html" and (path.parent / "_static").is_dir())


def test_each_page_is_there_and_leads_to_each(site: dict[Path, Page]) -> None:
    folder = top(site).parent
    pages = {path.relative_to(DOCS).with_suffix(".html") for path in DOCS.rglob("*.md")}
    assert len(pages) > 30
    assert pages <= {path.relative_to(folder) for path in site}
    for page in pages:
        links = {(folder / page).parent / link.partition("#")[0] for link in site[folder / page].links}
        reached = {path.resolve() for path in links if path.suffix == ".html"} | {folder / page}
        assert {folder / each for each in pages} - reached == set(), page


def test_no_link_within_it_is_broken(site: dict[Path, Page]) -> None:
    broken = []
    for path, page in site.items():
        for link in page.links:
            name, _, fragment = link.partition("#")
            if re.match(r"\w+:", link):
                continue
            target = (path.parent / unquote(name)).resolve() if name else path
            known = site[target].names if target in site else set()
            if not target.exists() or (fragment and target in site and fragment not in known):
                broken.append(f"{path.name}: {link}")
    assert broken == []


def test_a_browser_loads_nothing_from_another_host(site: dict[Path, Page]) -> None:
    folder = top(site).parent
    loads = [(path.name, load) for path, page in site.items() for load in page.loads]
    assert len(loads) > len(site)
    assert [each for each in loads if OUTSIDE.match(each[1])] == []
    styles = list(folder.rglob("*.css"))
    assert styles
    assert [found for path in styles for found in IN_STYLES.findall(path.read_text())] == []


def test_it_is_dark_for_those_who_read_so(site: dict[Path, Page]) -> None:
    styles = "".join(path.read_text() for path in top(site).parent.rglob("*.css"))
    assert "@media (prefers-color-scheme: dark)" in styles or "@media(prefers-color-scheme:dark)" in styles


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("[gone](gone.md)", "gone"),
        ("[gone](page.md#gone)", "'gone'"),
        ("[gone](../gone.md)", "gone.md"),
        ("![gone](gone.png)", "gone.png"),
    ],
)
def test_a_link_to_nothing_keeps_it_from_being_made(tmp_path: Path, line: str, told: str) -> None:
    made = built(small(tmp_path, f"{line}\n"), tmp_path)
    assert made.returncode != 0
    assert told in made.stderr


def test_a_page_that_the_first_one_does_not_list_keeps_it_from_being_made(tmp_path: Path) -> None:
    docs = small(tmp_path, "")
    assert built(docs, tmp_path).returncode == 0
    (docs / "other.md").write_text("# Another\n")
    made = built(docs, tmp_path)
    assert made.returncode != 0
    assert "other.md: WARNING: document isn't included in any toctree" in made.stderr


def small(tmp_path: Path, text: str) -> Path:
    """A folder like docs/ of two pages, of which the second has a text."""
    docs = tmp_path / "docs"
    docs.mkdir()
    shutil.copy(DOCS / "conf.py", docs)
    (docs / "index.md").write_text("# The first\n\n## All\n\n- [A page](page.md)\n")
    (docs / "page.md").write_text(f"# A page\n\n{text}")
    return docs
