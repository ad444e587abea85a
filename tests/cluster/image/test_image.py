"""The images that the Dockerfile describes."""

import json
import tarfile
import zlib
from pathlib import Path
from typing import IO

import pytest

import edgeshare
from tests.kit.onenode.images import BASE_NAME, PROJECT, Store, base_layer, project_image
from tests.kit.processes.command import run

PULLED_MOST_MIB = 60
MIB = 1 << 20


def pulled_bytes(layer: IO[bytes]) -> int:
    """The size of a layer in a registry, at most: as gzip packs it at its fastest, in a third of the time."""
    packer = zlib.compressobj(level=1, wbits=31)
    packed = sum(len(packer.compress(data)) for data in iter(lambda: layer.read(MIB), b""))
    return packed + len(packer.flush())


def layers(archive: tarfile.TarFile) -> list[str]:
    """The names of an image's layers in its archive, lowest first."""
    manifest = archive.extractfile("manifest.json")
    assert manifest is not None
    (image,) = json.load(manifest)
    return list(image["Layers"])


def files(archive: tarfile.TarFile, layer: str) -> list[str]:
    """What a layer holds."""
    packed = archive.extractfile(layer)
    assert packed is not None
    with tarfile.open(fileobj=packed) as tar:
        return tar.getnames()


def test_what_runs_on_nodes_is_small_and_has_nothing_of_the_clusters_part_or_of_simulated_machines(
    archive: Path,
) -> None:
    with tarfile.open(archive) as whole:
        _, node, cluster = layers(whole)
        on_nodes, on_top = files(whole, node), files(whole, cluster)
        assert "opt/edgeshare/bin/edgeshare" in on_nodes
        assert not [name for name in (*on_nodes, *on_top) if "/simgpu/" in name or name.endswith("/libcuda.so.1")]
        for package in ("cryptography", "numpy"):
            assert not [name for name in on_nodes if f"/{package}" in name]
            assert [name for name in on_top if name.endswith(f"/{package}/__init__.py")]
        packed = whole.extractfile(node)
        assert packed is not None
        assert pulled_bytes(packed) <= PULLED_MOST_MIB * MIB


def compiled(archive: tarfile.TarFile, layer: str) -> dict[str, bytes]:
    """How each of a layer's sources of Python was compiled, as its compiled file begins; empty for one that was not."""
    packed = archive.extractfile(layer)
    assert packed is not None
    begins: dict[str, bytes] = {}
    with tarfile.open(fileobj=packed) as tar:
        for member in tar:
            path = Path(member.name)
            if member.name.startswith("opt/edgeshare/lib") and path.suffix == ".py":
                begins.setdefault(member.name, b"")
            elif member.name.startswith("opt/edgeshare/lib") and path.suffix == ".pyc":
                content = tar.extractfile(member)
                assert content is not None
                begins[str(path.parent.parent / f"{path.name.split('.')[0]}.py")] = content.read(8)
    return begins


def test_nothing_is_compiled_anew_as_a_part_starts_whatever_times_its_files_have(archive: Path) -> None:
    with tarfile.open(archive) as whole:
        for layer in layers(whole)[1:]:
            begins = compiled(whole, layer)
            assert len(begins) > 100
            # After its magic number it says that it goes by no time, and is not to be checked (PEP 552).
            assert {name for name, begin in begins.items() if begin[4:] != b"\x01\0\0\0"} == set()


@pytest.mark.soak
def test_an_image_is_made_of_a_fresh_clone_with_nothing_made_before(scratch: Path) -> None:
    clone = scratch / "clone"
    run(["git", "clone", "--quiet", PROJECT, clone])
    store = Store(scratch)
    store.add_base(BASE_NAME, base_layer())
    store.build_whole(clone, "made")
    assert store.run("made", "edgeshare", "--version").split()[-1] == edgeshare.__version__
    record = (
        "python3",
        "-c",
        "from importlib.metadata import files; print(*sorted(map(str, files('edgeshare'))), sep='\\n')",
    )
    made = store.run("made", *record).splitlines()
    name, archive = project_image()
    store.buildah("pull", "--quiet", f"docker-archive:{archive}")
    usual = store.run(name, *record).splitlines()
    assert made == usual
    assert "cuda_hook/libedgeshare_cuda.so" in made
