"""What NVIDIA itself publishes: the headers and runtimes of many CUDA versions (PyPI's wheels), and two driver
libraries (Debian's non-free component). Fetched once into the tests' cache, never installed, never shipped."""

import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from functools import cache
from pathlib import Path

from tests.kit.programs.cache import cache_dir, make_once

RELEASES = {
    "11.7": "nvidia-cuda-runtime-cu11==11.7.99",
    "11.8": "nvidia-cuda-runtime-cu11==11.8.89",
    "12.0": "nvidia-cuda-runtime-cu12==12.0.146",
    "12.1": "nvidia-cuda-runtime-cu12==12.1.105",
    "12.2": "nvidia-cuda-runtime-cu12==12.2.140",
    "12.3": "nvidia-cuda-runtime-cu12==12.3.101",
    "12.4": "nvidia-cuda-runtime-cu12==12.4.127",
    "12.5": "nvidia-cuda-runtime-cu12==12.5.82",
    "12.6": "nvidia-cuda-runtime-cu12==12.6.77",
    "12.8": "nvidia-cuda-runtime-cu12==12.8.90",
    "12.9": "nvidia-cuda-runtime-cu12==12.9.79",
    "13.0": "nvidia-cuda-runtime==13.0.96",
    "13.1": "nvidia-cuda-runtime==13.1.80",
    "13.2": "nvidia-cuda-runtime==13.2.86",
    "13.3": "nvidia-cuda-runtime==13.3.29",
    "13.4": "nvidia-cuda-runtime==13.4.92",
    "13.5": "nvidia-cuda-runtime==13.5.37",
}
"""Every minor version of CUDA whose headers PyPI has; a new one is one line here."""

DRIVERS = {"470": "libnvidia-tesla-470-cuda1", "535": "libcuda1"}
"""Debian's packages of driver libraries, by the version that Debian 12 has."""

PATIENCE_S = 120
KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


class NotHereError(Exception):
    """Something of NVIDIA's cannot be had on this machine; the message says why."""


def said(*command: object, folder: Path | None = None) -> str:
    """What a command printed. Raises NotHereError when it fails or cannot be run."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotHereError(str(error)) from error
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no word why"]
        raise NotHereError(f"{Path(words[0]).name} says: {lines[-1]}")
    return done.stdout


def wheel_folder(version: str) -> Path:
    return cache_dir() / f"cuda-{version}"


def fetch_wheel(version: str) -> Path:
    def fetch(folder: Path) -> None:
        folder.mkdir()
        with tempfile.TemporaryDirectory() as scratch:
            pip = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps"]
            said(*pip, "--retries=1", "--only-binary=:all:", "-d", scratch, RELEASES[version])
            with zipfile.ZipFile(next(Path(scratch).glob("*.whl"))) as wheel:
                for name in wheel.namelist():
                    if re.search(r"/(cuda|cudaTypedefs)\.h$|/libcudart\.so\.\d", name):
                        (folder / Path(name).name).write_bytes(wheel.read(name))

    return make_once(wheel_folder(version), fetch)


@cache
def why_no_wheels() -> str | None:
    """Tried with the first release that is not in the cache: where that cannot be had, no other is tried."""
    for version, requirement in RELEASES.items():
        if not wheel_folder(version).exists():
            try:
                fetch_wheel(version)
            except NotHereError as error:
                return f"{requirement} cannot be had: {error}"
            return None
    return None


def release(version: str) -> Path:
    """The folder of a CUDA release: `cuda.h`, `cudaTypedefs.h` and `libcudart.so.*`. Raises NotHereError."""
    if not wheel_folder(version).exists() and (reason := why_no_wheels()) is not None:
        raise NotHereError(reason)
    return fetch_wheel(version)


@cache
def try_driver(version: str) -> Path | str:
    """A driver's folder, or why it cannot be had."""
    package = DRIVERS[version]

    def fetch(folder: Path) -> None:
        folder.mkdir()
        with tempfile.TemporaryDirectory() as scratch:
            deb = download(package, Path(scratch))
            said("dpkg-deb", "-x", deb, Path(scratch) / "unpacked")
            # The file itself, whatever links lead to it.
            found = [path for path in Path(scratch).rglob("libcuda.so.*") if not path.is_symlink()]
            if not found:
                raise NotHereError("it has no libcuda.so.*")
            shutil.copy(found[0], folder / "libcuda.so.1")

    try:
        return make_once(cache_dir() / f"driver-{package}", fetch)
    except NotHereError as error:
        return f"Debian's package {package} cannot be had: {error}"


def driver(version: str) -> Path:
    """The file of a real driver library, `libcuda.so.1`. Raises NotHereError."""
    folder = try_driver(version)
    if isinstance(folder, str):
        raise NotHereError(folder)
    return folder / "libcuda.so.1"


def download(package: str, scratch: Path) -> Path:
    """A Debian package from the non-free component of this system's own mirror, by a configuration of apt's own."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise NotHereError("this machine has no apt-get and dpkg-deb, and Debian is where the driver libraries are")
    wanted = ["Created-By: Packages", "Origin: Debian", "Component: main"]
    repositories = said("apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME)", *wanted).splitlines()
    # Not those of updates and of security.
    mirrors = [line.split() for line in repositories if "-" not in line.split()[1]]
    if not mirrors:
        raise NotHereError("this machine's apt knows no Debian mirror (run apt-get update), so no non-free component")
    (uri, codename), *_ = mirrors
    options = f"[signed-by={KEYS}] " if KEYS.exists() else ""
    (scratch / "sources.list").write_text(f"deb {options}{uri} {codename} non-free\n")
    (scratch / "lists" / "partial").mkdir(parents=True)
    (scratch / "archives" / "partial").mkdir(parents=True)
    settings = {
        "Dir::Etc::SourceList": scratch / "sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State::Lists": scratch / "lists",
        "Dir::Cache": scratch,
        "Acquire::Languages": "none",
        "APT::Sandbox::User": "",  # the folder is this user's alone
    }
    flags = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    said("apt-get", *flags, "update")
    said("apt-get", *flags, "download", package, folder=scratch)
    return next(scratch.glob("*.deb"))


@cache
def header_names(version: str) -> frozenset[str]:
    """Every function that a release's headers declare, in all versions and forms. Raises NotHereError."""
    folder = release(version)
    declared = said("cc", "-E", "-P", "-D__CUDA_API_VERSION_INTERNAL", folder / "cuda.h")
    names = set(re.findall(r"\bCUresult\s+(cu\w+)\s*\([^;{]*\)\s*;", declared))
    # A name that the types of function pointers have, and no declaration, would be one that the pattern misses.
    typed = set(re.findall(r"\bPFN_(cu\w+?)_v\d+(?:_ptsz|_ptds)?\)", (folder / "cudaTypedefs.h").read_text()))
    return frozenset(names | (typed - {base(name) for name in names}))


@cache
def exported_names(library: Path) -> frozenset[str]:
    """Every function that a driver library exports."""
    lines = said("nm", "-D", "--defined-only", library).splitlines()
    return frozenset(name for name in (line.split()[-1].partition("@")[0] for line in lines) if name.startswith("cu"))


def base(name: str) -> str:
    """The name that cuGetProcAddress is asked for: without version and form."""
    return re.sub(r"(_v\d+)?(_ptsz|_ptds)?$", "", name)
