"""What is not released: one line says why, and nothing is left."""

import shutil
import subprocess
from pathlib import Path

import pytest
from release.command import ReleaseError
from release.version import parse

from tests.kit.deploy.repository import VERSION, Repository, refused


def path_of(names: set[str], repository: Repository, folder: Path) -> str:
    """A PATH with these programs alone."""
    path = folder / "path"
    path.mkdir()
    for name in names:
        found = shutil.which(name, path=repository.env["PATH"]) if name == "git" else None
        # A docker without the plugin ends so.
        (path / name).symlink_to(found or "/bin/false")
    return str(path)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("", "no semantic version"),
        ("1.0", "no semantic version"),
        ("v1.0.0", "no semantic version"),
        ("1.0.0\n", "no semantic version"),
        ("01.0.0", "no semantic version"),
        ("1.0.0+linux", "no tag of an image"),
        ("1.0.0-1", "no Python package"),
        ("1.0.0-rc.1.post.2", "no Python package"),
        ("1.0.0-first", "no Python package"),
        (f"1.0.0-rc.{'1' * 63}", "longer than"),
    ],
)
def test_version_is_one_that_all_that_carries_it_can_have(words: str, why: str) -> None:
    with pytest.raises(ReleaseError, match=why) as refusal:
        parse(words)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("words", ["0.2.0", "10.20.30", "1.0.0-alpha.1", "1.0.0-beta.2", "1.0.0-rc.1"])
def test_versions_and_those_that_come_before_them_are_taken(words: str) -> None:
    assert parse(words) == words


def test_version_that_is_none_is_refused(repository: Repository) -> None:
    assert "VERSION='0.2' is no semantic version" in refused(repository.release("0.2"), repository)


def test_version_is_the_tags(clone: Repository) -> None:
    clone.git("tag", "latest")
    clone.git("tag", "v0.3.0")
    assert "this commit is tagged v0.3.0" in refused(clone.release(), clone)


def test_version_is_no_other_commits(clone: Repository) -> None:
    clone.git("tag", f"v{VERSION}")
    clone.write("more", "")
    clone.commit()
    assert f"v{VERSION} is another commit" in refused(clone.release(), clone)


@pytest.mark.parametrize("tag", [VERSION, f"v{VERSION}"])
def test_tag_that_says_the_version_is_no_reason(clone: Repository, tmp_path: Path, tag: str) -> None:
    clone.git("tag", "v0.3.0")
    clone.git("tag", tag)
    # What is looked at next is not there.
    assert "neither buildah nor docker" in refused(clone.release(path=path_of({"git"}, clone, tmp_path)), clone)


@pytest.mark.parametrize("name", ["deploy/chart/values.yaml", "new.txt"])
def test_tree_with_changes_that_are_not_committed_is_refused(clone: Repository, name: str) -> None:
    clone.write(name, "changed")
    assert f"not committed: {name}: " in refused(clone.release(), clone)


def test_tree_that_is_no_repository_is_refused(clone: Repository) -> None:
    shutil.rmtree(clone.tree / ".git")
    assert "not a git repository" in refused(clone.release(), clone)


def test_folder_of_a_larger_repository_is_refused(clone: Repository, tmp_path: Path) -> None:
    within = Repository(tmp_path / "larger/tree", clone.helm, clone.env)
    shutil.copytree(clone.tree, within.tree, ignore=shutil.ignore_patterns(".git"))
    subprocess.run(["git", "init", "--quiet", within.tree.parent], env=within.env, check=True)
    assert "no repository but a folder of one" in refused(within.release(), within)


@pytest.mark.parametrize(
    ("there", "why"),
    [
        ({}, "git cannot be run (No such file or directory): install it"),
        ({"git"}, "neither buildah nor docker on the PATH"),
        ({"git", "docker"}, "docker but neither its plugin buildx"),
    ],
)
def test_program_that_is_missing_is_named(clone: Repository, tmp_path: Path, there: set[str], why: str) -> None:
    assert why in refused(clone.release(path=path_of(there, clone, tmp_path)), clone)
