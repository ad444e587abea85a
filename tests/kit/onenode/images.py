"""The images that the node's tests run: a distribution with Python, and what is put on it."""

import ast
import hashlib
import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path

from tests.kit.processes.command import run, say
from tests.kit.processes.errors import NodeError
from tests.kit.programs.archive import write_image, write_layer
from tests.kit.programs.cache import cache_dir, make_once, scratch_dir
from tests.kit.programs.packages import IMAGE_PACKAGES, SYSTEM_PATH, install, missing

PROJECT = Path(__file__).parents[3]
PAUSE_SOURCE = Path(__file__).parent / "pause.c"

# The suite whose own Python is the one that the wheels are made with.
SUITES = {(3, 11): "bookworm", (3, 12): "noble", (3, 13): "trixie"}
PROJECT_REPOSITORY = "localhost/edgeshare"
BASE_NAME = "localhost/edgeshare-test-base:1"
BUILDER_NAME = "localhost/edgeshare-test-builder:1"
# Wheels of C++ code, gRPC's among them, expect its library, which every image with a package manager has.
BASE_PACKAGES = ("python3", "libstdc++6")
# What a machine has that makes wheels of the tree, with a compiler for what is of C.
BUILDER_PACKAGES = (*BASE_PACKAGES, "ca-certificates", "gcc", "libc6-dev", "mawk", "python3-dev", "python3-venv")
# Of a machine that makes wheels for the other processor, too: each has Python's headers of its own.
CROSS_BUILDER_PACKAGES = (*BUILDER_PACKAGES, "libpython3-dev:arm64")
PROCESSORS = {"x86_64": "amd64", "aarch64": "arm64"}
"""What the kernel calls a processor → what Debian and Go do."""
BUILD_PLATFORM = f"--build-arg=BUILDPLATFORM=linux/{PROCESSORS[os.uname().machine]}"
"""What buildah 1.28 has to be told of this machine."""
PIP_WHEEL = (sys.executable, "-m", "pip", "wheel", "--quiet")
# Documentation and translations are half of what a distribution adds to an interpreter.
LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*")
# Of another processor's packages, which are unpacked and not set up: nothing of theirs can be run here.
UNPACKED = (
    *("--variant=extract", "--skip=check/qemu"),
    '--extract-hook=for package in "$1"/var/cache/apt/archives/*.deb; do '
    'dpkg-deb --field "$package"; echo "Status: install ok installed"; echo; done >"$1"/var/lib/dpkg/status',
)
# What of the essential packages such a base has: it is not made of these all.
UNPACKED_TOO = ("base-files", "coreutils", "dash")
STORAGE = """
[storage]
driver = "overlay"
graphroot = "{folder}/store"
runroot = "{folder}/run"
"""


def base_layer(packages: Sequence[str] = BASE_PACKAGES, machine: str = os.uname().machine) -> Path:
    """A root file system with Python, for this processor or another: a plain tar, made by mmdebstrap and cached."""
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
        here, wanted = PROCESSORS[os.uname().machine], PROCESSORS[machine]
        included = f"--include={','.join(packages if here == wanted else (*packages, *UNPACKED_TOO))}"
        others = {each.partition(":")[2] for each in packages} - {""}
        architectures = f"--architectures={','.join((wanted, *sorted(others)))}"
        made_as = ["--variant=essential"] if here == wanted else list(UNPACKED)
        excluded = [f"--dpkgopt=path-exclude={pattern}" for pattern in LEFT_OUT]
        run(
            ["mmdebstrap", "--quiet", architectures, *made_as, included, *excluded, suite, path],
            # A fixed time makes the layer the same wherever it is made.
            env={**os.environ, "PATH": SYSTEM_PATH, "SOURCE_DATE_EPOCH": "0"},
        )

    name = "-".join(("base", suite, *packages, machine))
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
        folder, dockerfile = Path(scratch), PROJECT / "Dockerfile"
        # A copy, so that neither an older build's files get in nor the wheel's are left in the tree.
        source = shutil.copytree(PROJECT, folder / "source", ignore=_left_out)
        files = sorted(path for path in source.rglob("*") if path.is_file())
        paths = "\n".join(str(path.relative_to(source)) for path in files)
        dependencies = sorted(_dependencies().iterdir())
        # Compiling takes half a minute, and gives the same for the same sources.
        key = _digest([dockerfile, base_layer(), *dependencies, *files], f"{os.uname().machine}\n{paths}")
        name = f"{PROJECT_REPOSITORY}:{key}"
        archive = cache_dir() / "images" / f"{key}.tar"
        make_once(archive, lambda path: _build(folder, name, path))
    for older in archive.parent.glob("*.tar"):
        if older != archive:
            older.unlink()
    return name, archive


def _left_out(folder: str, names: list[str]) -> set[str]:
    """What of a folder of the tree no wheel is made of, as builders are told by .dockerignore."""
    below = Path(folder).relative_to(PROJECT)
    lines = (PROJECT / ".dockerignore").read_text().splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    return {
        name
        for name in names
        if any(
            fnmatch(name if pattern.startswith("**/") else str(below / name), pattern.removeprefix("**/"))
            for pattern in patterns
        )
    }


def _dependencies() -> Path:
    """A folder with the wheels of pip and of what the project depends on."""
    requirements = PROJECT / "requirements.txt"

    def make(wheels: Path) -> None:
        run([*PIP_WHEEL, "--require-hashes", "--requirement", requirements, "--wheel-dir", wheels])

    return make_once(cache_dir() / f"wheels-{_digest([requirements], sys.implementation.cache_tag)}", make)


def _project_wheel(source: Path, wheels: Path) -> None:
    """Add the project's own wheel.

    Of what the tree has compiled all is taken that would be the same again, but for the hook, which a wheel has for an
    older C library: what mypyc made of the manager. Setuptools looks whether that
    library is newer than its C file, which mypyc writes where it differs alone.
    """
    native = source / "build" / f"lib.{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
    for made, folder in (
        ("build/__native*", native.parent),
        ("*__mypyc.*.so", native),
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


def _build(folder: Path, name: str, path: Path) -> None:
    wheels = shutil.copytree(_dependencies(), folder / "wheels")
    _project_wheel(folder / "source", wheels)
    store = Store(folder)
    store.add_base(BASE_NAME, base_layer())
    store.build(PROJECT, name, f"--build-context=wheels={wheels}")
    # An OCI archive would be compressed, and the node would only undo that.
    store.buildah("push", "--quiet", name, f"docker-archive:{path}:{name}")


class Store:
    """Images in the making, in a folder that is thrown away after: what is kept is an archive. Overlay works wherever
    containerd's own snapshots do, and spares the copies of the whole image that vfs makes."""

    def __init__(self, folder: Path) -> None:
        install(missing(IMAGE_PACKAGES))
        self._folder = folder
        self._options = ("--storage-driver=overlay", f"--root={folder / 'store'}", f"--runroot={folder / 'run'}")

    def buildah(self, command: str, *words: str | Path) -> str:
        """What it says. Raises NodeError."""
        return run(["buildah", *self._options, command, *words])

    def add_base(self, name: str, layer: Path) -> None:
        """An image to begin with."""
        archive = write_image(self._folder / "base.tar", name, [layer], entrypoint=["/usr/bin/python3"])
        self.buildah("pull", "--quiet", f"oci-archive:{archive}")

    def add_bases(self, name: str) -> None:
        """The same for both processors."""
        self.buildah("manifest", "create", name)
        for machine, processor in PROCESSORS.items():
            its, layers = f"{name}-{processor}", [base_layer(machine=machine)]
            path = self._folder / f"base-{processor}.tar"
            archive = write_image(path, its, layers, entrypoint=["/usr/bin/python3"], machine=machine)
            self.buildah("pull", "--quiet", f"oci-archive:{archive}")
            archive.unlink()
            self.buildah("manifest", "add", f"--arch={processor}", name, f"containers-storage:{its}")

    def build(self, context: Path, name: str, *words: str) -> None:
        """What the Dockerfile of a folder describes, on the base. Raises NodeError."""
        say(f"building {name} (a minute) …")
        options = ("--isolation=chroot", "--pull-never", f"--build-arg=BASE={BASE_NAME}", BUILD_PLATFORM)
        self.buildah("bud", *options, *words, f"--tag={name}", context)

    def build_whole(self, context: Path, name: str, *words: str, packages: Sequence[str] = BUILDER_PACKAGES) -> None:
        """The same with nothing made before, where these packages are. Raises NodeError."""
        self.build(context, name, *self.add_builder(packages), *words)

    def environment(self) -> dict[str, str]:
        """What has another program's buildah build from here."""
        conf = self._folder / "storage.conf"
        conf.write_text(STORAGE.format(folder=self._folder))
        return {"CONTAINERS_STORAGE_CONF": str(conf), "BUILDAH_ISOLATION": "chroot"}

    def add_builder(self, packages: Sequence[str] = BUILDER_PACKAGES) -> list[str]:
        """An image of these packages to make wheels in, and the options of a build that does: it gets them where pip is
        set up to get them. Raises NodeError."""
        self.add_base(BUILDER_NAME, base_layer(packages))
        said = run([sys.executable, "-m", "pip", "config", "list"]).splitlines()
        set_up = {
            name.rpartition(".")[2]: ast.literal_eval(value)
            for name, _, value in (each.partition("=") for each in said)
        }
        secret = self._folder / "pip.conf"
        secret.write_text("\n".join(["[global]", *(f"{name} = {value}" for name, value in set_up.items())]))
        folders = {str(Path(value).parent) for value in set_up.values() if Path(value).is_file()}
        folders |= {value for value in set_up.values() if Path(value).is_dir()}
        volumes = [f"--volume={folder}:{folder}:ro" for folder in sorted(folders)]
        return [f"--build-arg=BUILDER={BUILDER_NAME}", f"--secret=id=pip.conf,src={secret}", *volumes]

    def run(self, name: str, *words: str) -> str:
        """What a program says in a container of an image. Raises NodeError."""
        container = self.buildah("from", "--pull-never", name).strip()
        return self.buildah("run", "--isolation=chroot", container, "--", *words)

    def unpack(self, name: str, processor: str) -> Path:
        """The root of a container of an image for a processor, for whoever runs its programs in another way."""
        container = self.buildah("from", "--pull-never", f"--platform=linux/{processor}", name).strip()
        return Path(self.buildah("mount", container).strip())


def _digest(files: Sequence[Path], kind: str) -> str:
    total = hashlib.sha256(kind.encode())
    for path in files:
        with path.open("rb") as file:
            total.update(f"\0{path.name}\0{hashlib.file_digest(file, 'sha256').hexdigest()}".encode())
    return total.hexdigest()[:24]
