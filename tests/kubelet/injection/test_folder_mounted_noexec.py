"""Where the loader would pass the hook over and run the program without it, nothing starts."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cuda_hook
from edgeshare.cli.run import hook_library
from edgeshare.contract.errors import Unavailable
from edgeshare.contract.names import HOOK_LIBRARY

SAFETY_S = 60

WITHOUT_EXEC = "mount --make-rprivate /; mount -t tmpfs -o noexec tmpfs {folder}; "
LATER = """
import subprocess, sys
from pathlib import Path
from deviceplugin.inject.library import Library
from edgeshare.contract.errors import Unavailable
folder, source = map(Path, sys.argv[1:])
library = Library(folder / "hook", source)
subprocess.run(["mount", "-o", "remount,exec", folder], check=True)
library.install()
library.check(library.hash)
subprocess.run(["mount", "-o", "remount,noexec", folder], check=True)
try:
    library.check(library.hash)
except Unavailable as error:
    print(error)
"""


def without_exec(folder: Path, *command: object) -> subprocess.CompletedProcess[str]:
    """Runs a command where this folder is mounted noexec, for it alone. Skips where this user cannot mount."""
    script = WITHOUT_EXEC.format(folder=folder)
    tried = subprocess.run(["unshare", "--mount", "sh", "-ec", script], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"cannot mount here: {tried.stderr.strip()}")
    return subprocess.run(
        ["unshare", "--mount", "sh", "-ec", script + 'exec "$@"', "sh", *map(str, command)],
        capture_output=True,
        text=True,
        timeout=SAFETY_S,
        check=False,
    )


def test_the_loader_runs_a_program_without_a_library_that_lies_there(tmp_path: Path) -> None:
    # Why all of this is needed.
    library = tmp_path / HOOK_LIBRARY
    source = Path(cuda_hook.__file__).with_name(HOOK_LIBRARY)
    script = f"cp {source} {library}; LD_PRELOAD={library} cat /proc/self/maps"
    done = without_exec(tmp_path, "sh", "-c", script)
    assert done.returncode == 0
    assert "cannot be preloaded" in done.stderr
    assert HOOK_LIBRARY not in done.stdout


def test_the_plugin_does_not_start_and_says_what_to_do(root: Path) -> None:
    state_dir = root / "state"
    state_dir.mkdir()
    command = [sys.executable, "-m", "edgeshare.cli", "deviceplugin", "--kubelet-dir", root / "kubelet"]
    done = without_exec(state_dir, *command, "--runtime-dir", root / "run", "--state-dir", state_dir)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert f"no program can load {state_dir}/hook/" in line
    assert "mounted noexec" in line
    assert "choose another folder" in line


def test_no_container_starts_when_it_was_mounted_so_later(tmp_path: Path) -> None:
    source = Path(cuda_hook.__file__).with_name(HOOK_LIBRARY)
    done = without_exec(tmp_path, sys.executable, "-c", LATER, tmp_path, source)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"no program can load {tmp_path}/hook/")


@pytest.mark.parametrize("name", ["a folder", "a:b", "$LIB"])
def test_run_refuses_a_library_that_the_variable_cannot_name(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / name
    folder.mkdir()
    shutil.copy(Path(cuda_hook.__file__).with_name(HOOK_LIBRARY), folder)
    monkeypatch.setattr(cuda_hook, "__file__", str(folder / "__init__.py"))
    with pytest.raises(Unavailable, match="LD_PRELOAD cannot name"):
        hook_library()
