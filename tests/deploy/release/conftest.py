"""Releases of a repository that is made for them."""

import os
import shutil
from pathlib import Path

import pytest
from release.images import PROCESSORS

from tests.kit.deploy.repository import (
    COMPILED,
    COPIED,
    DEBIAN,
    DOCKERFILE,
    OS_RELEASE,
    PROGRAMS,
    REQUIREMENTS,
    ROOT,
    STORAGE,
    VERSION,
    WHEEL,
    Repository,
)
from tests.kit.programs.packages import SYSTEM_PATH, install, missing


@pytest.fixture(scope="session")
def repository(helm: Path, tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """A repository of one commit, whose images hold the project and one package each, and one of Debian. Nobody writes
    into it."""
    install(missing(PROGRAMS))
    folder = tmp_path_factory.mktemp("release")
    tree = folder / "tree"
    tree.mkdir()
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, ignore=COMPILED)
        else:
            shutil.copy(ROOT / name, tree / name)
    (folder / "storage.conf").write_text(STORAGE.format(folder=folder))
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    env |= {
        "PATH": SYSTEM_PATH,
        "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
        "BUILDAH_ISOLATION": "chroot",
        # Neither a configuration of this machine nor a repository that its temporary files may lie in.
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_SYSTEM": "/dev/null",
        "GIT_CEILING_DIRECTORIES": str(folder.parent),
    }
    made = Repository(tree, helm, env)
    made.write("Dockerfile", DOCKERFILE)
    made.add_package("node", "edgeshare", VERSION)
    made.add_package("node", "first-package", "1.2")
    made.add_package("cluster", "second", "3")
    for processor in PROCESSORS:
        made.write(f"packages/base-{processor}/var/lib/dpkg/status", DEBIAN.format(processor=processor))
        made.write(f"packages/base-{processor}/usr/lib/os-release", OS_RELEASE)
    made.write("packages/second-3-py3-none-any.whl", WHEEL)
    made.write("requirements.txt", REQUIREMENTS)
    made.git("init", "--quiet")
    made.commit()
    return made


@pytest.fixture
def clone(repository: Repository, tmp_path: Path) -> Repository:
    """One to write into."""
    return repository.clone(tmp_path / "clone")


@pytest.fixture(scope="session")
def released(repository: Repository, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a release."""
    return repository.clone(tmp_path_factory.mktemp("released") / "tree").released()
