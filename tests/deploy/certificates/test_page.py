"""What the page on placing pods shows of certificates and of kube-scheduler is what both take."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.kit.apiserver.api_server import ApiServer, done
from tests.kit.programs.binaries import KUBERNETES, program

ROOT = Path(__file__).parents[3]
NAME = "edgeshare-assigner"


def blocks(language: str) -> list[str]:
    """The code blocks of the page's section on the assigner."""
    page = (ROOT / "docs/install/placement.md").read_text()
    section = page.split("\n## The assigner\n")[1].split("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


def run(script: str, folder: Path, kubeconfig: Path | None = None) -> None:
    """Runs a block of the page with this tree's command and the tests' own kubectl."""
    paths = [Path(sys.executable).parent, program(KUBERNETES, "kubectl").parent]
    environment = {**os.environ, "PATH": ":".join([*map(str, paths), os.environ["PATH"]])}
    if kubeconfig is not None:
        environment["KUBECONFIG"] = str(kubeconfig)
    ran = subprocess.run(
        ["bash", "-eu", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


def block_with(text: str, language: str = "sh") -> str:
    (found,) = (each for each in blocks(language) if text in each)
    return found


@pytest.fixture(scope="module")
def certificates(installed: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the commands of the page bring to the control plane's nodes."""
    folder = tmp_path_factory.mktemp("certificates")
    run(block_with("certificates --apply"), folder, installed.kubeconfig)
    return folder / "for-kube-scheduler"


def verdict(folder: Path, name: str, purpose: str, *options: str) -> int:
    words = ["openssl", "verify", "-x509_strict", "-CAfile", "ca.crt", "-purpose", purpose, *options, name]
    return subprocess.run(words, cwd=folder, capture_output=True, check=False).returncode


def test_commands_of_the_page_bring_kube_schedulers_part_which_is_for_that_end_alone(certificates: Path) -> None:
    assert {path.name for path in certificates.iterdir()} == {"ca.crt", "scheduler.crt", "scheduler.key"}
    assert verdict(certificates, "scheduler.crt", "sslclient") == 0
    assert verdict(certificates, "scheduler.crt", "sslserver") != 0
    assert not [path for path in certificates.iterdir() if path.stat().st_mode & 0o007]


def test_files_of_the_page_are_for_that_end_alone_and_make_the_same_secret(
    installed: ApiServer, certificates: Path, tmp_path: Path
) -> None:
    for suffix in ("-ca", "", "-scheduler"):
        done(installed.kubectl("delete", "secret", f"{NAME}-tls{suffix}", "--namespace=edgeshare"))
    run(block_with("certificates --folder"), tmp_path, installed.kubeconfig)
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
    assert verdict(folder, "tls.crt", "sslserver", "-verify_hostname", f"{NAME}.edgeshare.svc") == 0
    assert verdict(folder, "tls.crt", "sslclient") != 0
    assert verdict(folder, "scheduler.crt", "sslclient") == 0
    template = "jsonpath={.data['tls\\.crt','tls\\.key','ca\\.crt']}"
    words = ("get", "secret", f"{NAME}-tls", "--namespace=edgeshare", f"--output={template}")
    assert len(done(installed.kubectl(*words)).stdout.split()) == 3


def test_kube_scheduler_takes_the_configuration_of_the_page(
    certificates: Path, installed: ApiServer, tmp_path: Path
) -> None:
    text = block_with("KubeSchedulerConfiguration", "yaml").replace(
        "/etc/kubernetes/scheduler.conf", str(installed.kubeconfig)
    )
    given, taken = tmp_path / "given.yaml", tmp_path / "taken.yaml"
    given.write_text(text.replace("/etc/kubernetes/edgeshare", str(certificates)))
    words = [program(KUBERNETES, "kube-scheduler"), f"--config={given}", f"--write-config-to={taken}"]
    ran = subprocess.run([*words, "--secure-port=0"], capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0, ran.stderr
    (extender,) = yaml.safe_load(taken.read_text())["extenders"]
    assert extender == yaml.safe_load(given.read_text())["extenders"][0]
