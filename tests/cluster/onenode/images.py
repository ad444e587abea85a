"""The images that the node's tests run: a distribution with Python, and what is put on it."""

import hashlib
import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from onenode.archive import write_image, write_layer
from onenode.cache import cache_dir, make_once, scratch_dir
from onenode.command import run, say
from onenode.errors import NodeError
from onenode.packages import IMAGE_PACKAGES, SYSTEM_PATH, install, missing

PROJECT = Path(__file__).parent.parent.parent.parent
PAUSE_SOURCE = Path(__file__).parent / "pause.c"

# The suite whose own Python is the one that the wheels are made with.
SUITES = {(3, 11): "bookworm", (3, 12): "noble", (3, 13): "trixie"}
PROJECT_REPOSITORY = "localhost/edgeshare"
BASE_NAME = "localhost/edgeshare-test-base:1"
# Wheels of C++ code, gRPC's among them, expect its library, which every image with a package manager has.
BASE_PACKAGES = ("python3", "libstdc++6")
# What of the tree no wheel is made of: built files, and what an image does not change with.
NOT_IN_WHEEL = {"build", "dist", "bench", "deploy", "docs", "tests", "tools"}
"""At the top of the tree; a folder of the product may be called so, too."""
MADE_OR_HIDDEN = (".*", "*.so*", "*.o", "__pycache__")
PIP_WHEEL = (sys.executable, "-m", "pip", "wheel", "--quiet")
# Documentation and translations are half of what a distribution adds to an interpreter.
LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*")


def base_layer() -> Path:
    """A root file system with Python: an uncompressed tar, made by mmdebstrap and cached."""
    suite = SUITES.get(sys.version_info[:2])
    if suite is None:
        known = ", ".join(f"{major}.{minor}" for major, minor in SUITES)
        ours = f"{sys.version_info[0]}.{sys.version_info[1]}"
        raise NodeError(
            f"no distribution is known whose own Python is {ours}, to make images from: make the virtual "
            f"environment with one of {known}"
        )

    def make(path: Path) -> None:
        install(missing(IMAGE_PACKAGES))
        say(f"making the images' base, {suite} with Python (once; about a minute) …")
        included = f"--include={','.join(BASE_PACKAGES)}"
        excluded = [f"--dpkgopt=path-exclude={pattern}" for pattern in LEFT_OUT]
        run(
            ["mmdebstrap", "--quiet", "--variant=essential", included, *excluded, suite, path],
            # A fixed time makes the layer the same wherever it is made.
            env={**os.environ, "PATH": SYSTEM_PATH, "SOURCE_DATE_EPOCH": "0"},
        )

    name = "-".join(("base", suite, *BASE_PACKAGES, os.uname().machine))
    return make_once(cache_dir() / f"{name}.tar", make)


def pause_image(folder: Path, name: str) -> Path:
    """An archive of the image that holds a pod's namespaces open: one static program."""
    pause = folder / "pause"
    run(["gcc", "-static", "-Os", "-s", "-Wall", "-Wextra", "-Werror", "-o", pause, PAUSE_SOURCE])
    layer = write_layer(folder / "pause.layer.tar", {"/pause": pause})
    return write_image(folder / "pause.tar", name, [layer], entrypoint=["/pause"])


def client_image(folder: Path, name: str, files: Mapping[str, Path], entrypoint: Sequence[str]) -> Path:
    """An archive of an image with the base's C library and Python, and local files at the paths given."""
    slug = hashlib.sha256(name.encode()).hexdigest()[:12]
    layer = write_layer(folder / f"{slug}.layer.tar", files)
    return write_image(folder / f"{slug}.tar", name, [base_layer(), layer], entrypoint=entrypoint)


def project_image() -> tuple[str, Path]:
    """The image that the project's Dockerfile describes: its name, tagged by what it is made of, and an archive.

    What the project depends on comes from where pip is set up to get it: the files that requirements.txt names by hash.
    """
    cache_dir().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch_dir(), prefix="edgeshare-test-image-") as scratch:
        context, dockerfile = Path(scratch), PROJECT / "Dockerfile"
        # A copy, so that neither an older build's files get in nor the wheel's are left in the tree.
        source = shutil.copytree(PROJECT, context / "source", ignore=_left_out)
        files = sorted(path for path in source.rglob("*") if path.is_file())
        paths = "\n".join(str(path.relative_to(source)) for path in files)
        dependencies = sorted(_dependencies().iterdir())
        # Compiling takes half a minute, and gives the same for the same sources.
        key = _digest([dockerfile, base_layer(), *dependencies, *files], f"{os.uname().machine}\n{paths}")
        name = f"{PROJECT_REPOSITORY}:{key}"
        archive = cache_dir() / "images" / f"{key}.tar"
        make_once(archive, lambda path: _build(context, dockerfile, name, path))
    for older in archive.parent.glob("*.tar"):
        if older != archive:
            older.unlink()
    return name, archive


def _left_out(folder: str, names: list[str]) -> set[str]:
    """What of a folder of the tree no wheel is made of."""
    at_the_top = NOT_IN_WHEEL.intersection(names) if Path(folder) == PROJECT else set()
    return at_the_top | shutil.ignore_patterns(*MADE_OR_HIDDEN)(folder, names)


def _dependencies() -> Path:
    """A folder with the wheels of pip and of what the project depends on."""
    requirements = PROJECT / "requirements.txt"

    def make(wheels: Path) -> None:
        run([*PIP_WHEEL, "--require-hashes", "--requirement", requirements, "--wheel-dir", wheels])

    return make_once(cache_dir() / f"wheels-{_digest([requirements], sys.implementation.cache_tag)}", make)


def _project_wheel(source: Path, wheels: Path) -> None:
    """Add the project's own wheel.

    Of what the tree has compiled all is taken that would be the same again, but for the hook, which a wheel has for an
    older C library: the simulated drivers; and what mypyc made of the manager. Setuptools looks whether that
    library is newer than its C file, which mypyc writes where it differs alone.
    """
    native = source / "build" / f"lib.{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
    for made, folder in (
        ("build/__native*", native.parent),
        ("*__mypyc.*.so", native),
        ("simgpu/lib/*.so*", native / "simgpu/lib"),
    ):
        folder.mkdir(parents=True, exist_ok=True)
        for path in PROJECT.glob(made):
            # What is compiled does not tell by what flags.
            if not path.is_symlink() and path.stat().st_mtime_ns > (PROJECT / "setup.py").stat().st_mtime_ns:
                shutil.copy2(path, folder)
    run(
        [*PIP_WHEEL, "--no-build-isolation", "--no-deps", "--wheel-dir", wheels, source],
        env={
            **os.environ,
            "SOURCE_DATE_EPOCH": "315532800",  # 1980, the earliest that a zip can hold
            "CFLAGS": f"{os.environ.get('CFLAGS', '')} -ffile-prefix-map={source}=.",
        },
    )


def _build(context: Path, dockerfile: Path, name: str, path: Path) -> None:
    install(missing(IMAGE_PACKAGES))
    say(f"building {name} (a minute) …")
    _project_wheel(context / "source", shutil.copytree(_dependencies(), context / "wheels"))
    base = write_image(context / "base.tar", BASE_NAME, [base_layer()], entrypoint=["/usr/bin/python3"])
    # A store of its own, thrown away after: what is kept is the archive. Overlay works wherever containerd's
    # own snapshots do, and spares the copies of the whole image that vfs makes.
    buildah = [
        "buildah",
        "--storage-driver=overlay",
        f"--root={context / 'store'}",
        f"--runroot={context / 'run'}",
    ]
    run([*buildah, "pull", "--quiet", f"oci-archive:{base}"])
    options = ["--isolation=chroot", "--pull-never", f"--build-arg=BASE={BASE_NAME}", f"--file={dockerfile}"]
    run([*buildah, "bud", *options, f"--tag={name}", context])
    # An OCI archive would be compressed, and the node would only undo that.
    run([*buildah, "push", "--quiet", name, f"docker-archive:{path}:{name}"])


def _digest(files: Sequence[Path], kind: str) -> str:
    total = hashlib.sha256(kind.encode())
    for path in files:
        with path.open("rb") as file:
            total.update(f"\0{path.name}\0{hashlib.file_digest(file, 'sha256').hexdigest()}".encode())
    return total.hexdigest()[:24]
