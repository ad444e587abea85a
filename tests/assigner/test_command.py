"""What the command loads, and what it says where it cannot start."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )


def test_the_nodes_manager_loads_nothing_of_the_clusters_nor_the_other_way_round() -> None:
    script = """
import sys
import edgeshare.cli.sharemgr
loaded = [name for name in sys.modules if name.startswith("sharemgr.")]
assert not loaded, loaded
from sharemgr.node import config, manager
from sharemgr.node.sockets import loop
never = ("numpy", "aiohttp", "cryptography", "kubernetes", "sharemgr.cluster")
loaded = [name for name in never if name in sys.modules]
assert not loaded, loaded
"""
    done = run("-c", script)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "missing"),
    [
        (["cluster"], "numpy"),
        (["cluster"], "httptools"),
        (["certificates", "--folder", "none"], "cryptography"),
    ],
)
def test_a_missing_extra_is_said_in_a_line(words: list[str], missing: str) -> None:
    script = f"""
import sys
sys.modules["{missing}"] = None
sys.argv[1:] = ["sharemgr", *{words}]
from edgeshare.cli import main
main()
"""
    done = run("-c", script)
    assert done.returncode == 1
    command = f"edgeshare sharemgr {words[0]}"
    assert done.stderr == f"edgeshare: {command} needs {missing}: pip install 'edgeshare[cluster]'\n"


def test_what_it_cannot_start_with_is_said_in_a_line(tmp_path: Path) -> None:
    command = ("-m", "edgeshare.cli", "sharemgr", "cluster")
    done = run(*command)
    assert (done.returncode, done.stderr) == (
        1,
        "edgeshare: the pod has no service account (outside of a pod, name a kubeconfig): "
        "Service host/port is not set.\n",
    )
    config = tmp_path / "config.yaml"
    config.write_text("lease: assigner")
    done = run(*command, "--config", str(config))
    assert done.returncode == 1
    assert done.stderr.startswith(f"edgeshare: {config}: lease: ")
    assert done.stderr.count("\n") == 1
