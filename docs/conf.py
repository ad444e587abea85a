"""Makes a site of this folder: `make docs`. Its navigation is what `index.md` links to."""

import re
from pathlib import Path

from sphinx.application import Sphinx

project = "edgeshare"
extensions = ["myst_parser"]
exclude_patterns = ["**/.*"]
html_theme = "furo"
html_title = "edgeshare"
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
pygments_style, pygments_dark_style = "default", "monokai"
nitpicky = True
# As deep as anything links to.
myst_heading_anchors = 4
# `console` blocks are what was typed and what came; blocks of no language are no Python.
highlight_language = "none"

_SECTION = re.compile(r"^## (.+)\n((?:(?!^#).*\n)*)", re.MULTILINE)
_LINK = re.compile(r"\]\((\.\./[^)#]+\.md)(#[^)]*)?\)")
_PAGE = re.compile(r"^- \[[^]]+\]\(([^)#]+)\.md\)$", re.MULTILINE)


def navigation(app: Sphinx, name: str, source: list[str]) -> None:
    """Adds to the first page a table of contents for each of its sections, which the theme shows beside all pages."""
    if name == app.config.root_doc:
        for heading, pages in _SECTION.findall(source[0]):
            listed = "\n".join(_PAGE.findall(pages))
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {heading}\n\n{listed}\n```\n"


def files_beside(app: Sphinx, name: str, source: list[str]) -> None:
    """Takes along, as files, what pages link to of the tree's Markdown that is not in this folder."""
    folder = Path(app.env.doc2path(name)).parent

    def leads(link: re.Match[str]) -> str:
        inside = (folder / link[1]).resolve().is_relative_to(Path(app.srcdir).resolve())
        return link[0] if inside else f"](path:{link[1]})"

    source[0] = _LINK.sub(leads, source[0])


def setup(app: Sphinx) -> None:
    app.connect("source-read", files_beside)
    app.connect("source-read", navigation)
