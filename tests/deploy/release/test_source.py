"""The files that a release is made of."""

import re
from pathlib import Path

import pytest
import yaml
from release.command import ReleaseError
from release.commit import releasable
from release.source import write

from tests.kit.deploy.repository import VERSION, Repository


def test_version_is_put_into_package_and_chart_and_nothing_else_is_changed(
    repository: Repository, tmp_path: Path
) -> None:
    write(releasable(repository.tree, VERSION), VERSION, tmp_path)
    chart = yaml.safe_load((tmp_path / "deploy/chart/Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (VERSION, VERSION)
    assert re.findall('__version__ = "(.*)"', (tmp_path / "edgeshare/__init__.py").read_text()) == [VERSION]
    names = repository.git("ls-files").splitlines()
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()) == sorted(names)
    changed = [name for name in names if (tmp_path / name).read_bytes() != (repository.tree / name).read_bytes()]
    assert changed == ["deploy/chart/Chart.yaml", "edgeshare/__init__.py"]


def test_file_that_says_no_version_is_named(clone: Repository, tmp_path: Path) -> None:
    clone.write("deploy/chart/Chart.yaml", "name: edgeshare\nversion: 0.1.0\n")
    clone.commit()
    with pytest.raises(ReleaseError, match=r"deploy/chart/Chart\.yaml says the version 0 times"):
        write(releasable(clone.tree, VERSION), VERSION, tmp_path / "source")
