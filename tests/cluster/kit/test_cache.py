"""What is in the cache folder is whole, however many make it at once."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from tests.kit.programs.cache import make_once


def test_several_makers_at_once_make_it_once(tmp_path: Path) -> None:
    together, made = Barrier(8), []

    def make(path: Path) -> None:
        made.append(path)
        path.mkdir()
        (path / "content").write_text("whole")

    def ask(_: int) -> str:
        together.wait()
        return (make_once(tmp_path / "thing", make) / "content").read_text()

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(8))) == ["whole"] * 8
    assert len(made) == 1


def test_a_maker_that_fails_leaves_nothing_and_the_next_one_succeeds(tmp_path: Path) -> None:
    def fail(path: Path) -> None:
        path.write_text("half")
        raise ValueError("no space")

    with pytest.raises(ValueError, match="no space"):
        make_once(tmp_path / "thing", fail)
    assert not (tmp_path / "thing").exists()
    assert make_once(tmp_path / "thing", lambda path: path.touch()).exists()
    assert {path.name for path in tmp_path.iterdir()} == {"thing", "thing.lock"}
