"""A release that fails half-way leaves nothing of itself, and what was there before as it was."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from release.folder import whole

from tests.kit.deploy.repository import RELEASED, VERSION, Repository

FAILING = "FROM scratch AS wheels\nCOPY packages /\nFROM scratch AS cluster\nCOPY --from=wheels missing /\n"
BUILDAH = """#!/bin/sh
echo >{begun}
exec sleep 1000000
"""


def break_image(repository: Repository) -> None:
    """From now on the chart can be packed and wheels be built, and the first image cannot."""
    repository.write("Dockerfile", FAILING)
    repository.commit()


def test_nothing_is_left_of_a_release_whose_image_cannot_be_built(clone: Repository) -> None:
    break_image(clone)
    done = clone.release()
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "release: buildah build ended with status 125: it said why above"
    assert not (clone.tree / "dist").exists()


def test_release_that_fails_leaves_what_was_there(clone: Repository) -> None:
    clone.write("dist/edgeshare.yaml", "")
    clone.write(str(RELEASED / "SHA256SUMS"), "of before")
    break_image(clone)
    assert clone.release().returncode == 1
    assert {path.name for path in (clone.tree / "dist").iterdir()} == {"edgeshare.yaml", RELEASED.name}
    assert (clone.tree / RELEASED / "SHA256SUMS").read_text() == "of before"


def test_release_stands_in_the_place_of_one_of_before(tmp_path: Path) -> None:
    target = tmp_path / "dist/one"
    for name in ("first", "second"):
        with whole(target) as folder:
            (folder / name).touch()
    assert [path.relative_to(tmp_path / "dist") for path in tmp_path.rglob("dist/**/*")] == [
        Path("one"),
        Path("one/second"),
    ]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_of_a_release_that_is_ended(clone: Repository, tmp_path: Path, number: signal.Signals) -> None:
    begun = tmp_path / "begun"
    os.mkfifo(begun)
    program = tmp_path / "path/buildah"
    program.parent.mkdir()
    program.write_text(BUILDAH.format(begun=begun))
    program.chmod(0o755)
    env = {**clone.env, "PYTHONPATH": str(clone.tree / "tools"), "PATH": f"{program.parent}:{clone.env['PATH']}"}
    with subprocess.Popen(
        clone.command(VERSION), cwd=clone.tree, env=env, stderr=-1, start_new_session=True
    ) as release:
        # Opens once the other end does.
        begun.read_text()
        assert (clone.tree / "dist").exists()
        os.killpg(release.pid, number)
        assert release.wait() not in (0, 1)
    assert not (clone.tree / "dist").exists()
