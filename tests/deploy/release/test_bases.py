"""Which images others begin with: by digest, or there is no release."""

import pytest
from release.bases import bases
from release.command import ReleaseError

from tests.kit.deploy.repository import DOCKERFILE, ROOT, Repository, refused
from tests.kit.programs.archive import read_image

PINNED = f"example.com/python@sha256:{'5' * 64}"
OTHER = f"example.com/builder@sha256:{'6' * 64}"
OF_THE_TREE = (ROOT / "Dockerfile").read_text()


@pytest.mark.parametrize("form", ["--build-arg={}={}", "--build-arg {}={}"])
def test_both_of_the_trees_are_named_by_digest(form: str) -> None:
    options = [form.format("BASE", PINNED), form.format("BUILDER", OTHER)]
    found = bases(OF_THE_TREE, options)
    for target in ("node", "cluster"):
        base = found[target]
        assert base is not None
        assert base.labels == {
            "org.opencontainers.image.base.name": PINNED,
            "org.opencontainers.image.base.digest": f"sha256:{'5' * 64}",
        }
    assert found["wheels"] is None


@pytest.mark.parametrize("left", ["BASE", "BUILDER"])
@pytest.mark.parametrize("name", [None, "example.com/python:3.11", f"{PINNED[:-1]}", f"{PINNED}:3.11", ""])
def test_one_that_is_named_by_anything_else_is_refused(left: str, name: str | None) -> None:
    names = {"BASE": PINNED, "BUILDER": OTHER, left: name}
    options = [f"--build-arg={argument}={value}" for argument, value in names.items() if value is not None]
    with pytest.raises(ReleaseError, match=f"--build-arg={left}=NAME@sha256:") as refusal:
        bases(OF_THE_TREE, options)
    assert "\n" not in str(refusal.value)


def test_one_of_this_machine_is_taken_and_named() -> None:
    options = [f"--build-arg={argument}=localhost/made:1" for argument in ("BASE", "BUILDER")]
    base = bases(OF_THE_TREE, options)["cluster"]
    assert base is not None
    assert base.labels == {"org.opencontainers.image.base.name": "localhost/made:1"}


def test_a_release_by_a_tag_is_refused_before_anything_is_built(clone: Repository) -> None:
    clone.write("Dockerfile", DOCKERFILE.replace("FROM scratch AS node", "FROM example.com/python:3.11 AS node"))
    clone.commit()
    line = refused(clone.release(), clone)
    assert "example.com/python:3.11" in line
    assert "in the Dockerfile" in line


def test_images_that_begin_with_nothing_say_of_no_base(clone: Repository) -> None:
    labels = read_image(clone.released() / "edgeshare.oci.tar")["Labels"]
    assert not [name for name in labels if ".base." in name]
