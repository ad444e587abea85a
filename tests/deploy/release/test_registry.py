"""A real registry that is filled from a release, and what Helm and buildah get from there."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from release.images import PROCESSORS

from tests.kit.deploy.repository import VERSION, Repository
from tests.kit.programs.packages import unpacked

CONFIG = """
version: 0.1
storage: {{filesystem: {{rootdirectory: {folder}}}}}
http: {{addr: "127.0.0.1:0"}}
"""


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[str]:
    """An empty one, at a port that is free: its address."""
    config = tmp_path / "registry.yml"
    config.write_text(CONFIG.format(folder=tmp_path / "registry"))
    command = [unpacked("docker-registry") / "usr/bin/docker-registry", "serve", config]
    with subprocess.Popen(command, stderr=-1, text=True) as process:
        assert process.stderr is not None
        said = (re.search(r"listening on (127\.0\.0\.1:\d+)", line) for line in process.stderr)
        yield next(found[1] for found in said if found)
        process.terminate()
        # It writes a line for each request.
        process.communicate()


def copy(source: str, target: str, *words: str) -> None:
    """From one place of images to another, with options. What skopeo is linked with buildah is, too, by which a
    release was made."""
    options = ("--insecure-policy", "copy", "--quiet", "--dest-tls-verify=false", *words)
    subprocess.run([unpacked("skopeo") / "usr/bin/skopeo", *options, source, target], check=True)


def test_helm_gets_the_chart_from_a_registry_that_the_layout_is_copied_to(
    registry: str, released: Path, helm: Path, tmp_path: Path
) -> None:
    place = f"{registry}/charts/edgeshare"
    copy(f"oci:{released / 'chart'}:{VERSION}", f"docker://{place}:{VERSION}")
    pull = [helm, "pull", f"oci://{place}", f"--version={VERSION}", "--plain-http", f"--destination={tmp_path}"]
    done = subprocess.run(pull, check=True, capture_output=True, text=True)
    (tagged,) = json.loads((released / "chart/index.json").read_text())["manifests"]
    assert f"Digest: {tagged['digest']}" in done.stdout + done.stderr
    name = f"edgeshare-{VERSION}.tgz"
    assert (tmp_path / name).read_bytes() == (released / name).read_bytes()


@pytest.mark.parametrize("name", ["edgeshare", "edgeshare-node"])
def test_image_goes_to_a_registry_under_its_name_and_version_for_each_processor(
    registry: str, released: Path, repository: Repository, name: str
) -> None:
    place = f"docker://{registry}/{name}:{VERSION}"
    copy(f"oci-archive:{released / f'{name}.oci.tar'}", place, "--all")
    for processor in PROCESSORS:
        pull = ["buildah", "pull", "--quiet", "--tls-verify=false", f"--platform=linux/{processor}", place]
        pulled = subprocess.run(pull, env=repository.env, check=True, stdout=-1, text=True).stdout.strip()
        inspect = [
            "buildah",
            "inspect",
            "--type=image",
            "--format={{.OCIv1.Architecture}} {{.OCIv1.Config.Labels}}",
            pulled,
        ]
        done = subprocess.run(inspect, env=repository.env, check=True, stdout=-1, text=True)
        assert done.stdout.startswith(f"{processor} ")
        assert f"org.opencontainers.image.title:{name} " in done.stdout
        assert f"org.opencontainers.image.version:{VERSION}" in done.stdout
