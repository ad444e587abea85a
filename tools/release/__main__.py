"""Makes a release: `make release VERSION=0.2.0`."""

import argparse
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from release.bases import bases
from release.bill import bill, pinned
from release.chart import write_layout, write_package
from release.command import ReleaseError, do
from release.commit import Commit, releasable
from release.folder import whole, write_sums
from release.images import PROCESSORS, TARGETS, Builder, Image, builder, contents
from release.index import write_index
from release.source import write
from release.version import parse

ROOT = Path(__file__).parent.parent.parent


def fill(folder: Path, scratch: Path, commit: Commit, version: str, builder: Builder, helm: str) -> None:
    """Put all of a release into a folder, of the files that `builder` builds from. Raises ReleaseError."""
    source = builder.context
    base_of = bases((source / "Dockerfile").read_text(), builder.options)
    chart = source / "deploy/chart"
    package = write_package(helm, chart, commit.made_s, folder)
    write_layout(package, chart, commit.made_s, folder / "chart")
    render = [sys.executable, source / "deploy/render.py", f"--manifest={folder / 'edgeshare.yaml'}", f"--helm={helm}"]
    # It imports what lies beside it, and not what is installed, and leaves nothing there.
    do(render, {"PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"})
    archives: dict[str, dict[str, Path]] = {name: {} for name in TARGETS}
    for processor in PROCESSORS:
        wheels = builder.build_wheels(processor, scratch)
        known = pinned((source / "requirements.txt").read_text(), wheels)
        for name, target in TARGETS.items():
            labels = {
                "org.opencontainers.image.title": name,
                "org.opencontainers.image.version": version,
                "org.opencontainers.image.revision": commit.digest,
                "org.opencontainers.image.licenses": "Apache-2.0",
            }
            if (base := base_of[target]) is not None:
                labels |= base.labels
            archive = scratch / f"{name}.{processor}.oci.tar"
            image = Image(f"{name}:{version}", target, processor, labels)
            builder.build(image, wheels, archive)
            text = bill(name, version, commit, contents(archive, processor), known)
            (folder / f"{name}.{processor}.cdx.json").write_text(text)
            archives[name][processor] = archive
    for name, parts in archives.items():
        write_index(parts, folder / f"{name}.oci.tar")
    write_sums(folder)


def release(words: str, helm: str, options: Sequence[str]) -> Path:
    """Make a release of the version in `words`, and return its folder. Raises ReleaseError, and then leaves nothing."""
    version = parse(words)
    commit = releasable(ROOT, version)
    program = builder()
    target = ROOT / "dist" / f"edgeshare-{version}"
    with whole(target) as folder, tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "source"
        write(commit, version, source)
        fill(folder, Path(scratch), commit, version, Builder(program, source, options), helm)
    return target


def main(words: Sequence[str]) -> int:
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(prog="release", description="Make a release of HEAD, in dist/.")
    parser.add_argument("version", metavar="VERSION", help="a semantic version, for example 0.2.0")
    parser.add_argument("--helm", default="helm", help="the program, where it is not on the PATH")
    parser.add_argument(
        "option", nargs="*", metavar="OPTION", help="after a --: of buildah build, or docker buildx build"
    )
    arguments = parser.parse_args(words)
    # As an interrupt does, so that what was begun is removed.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        print(release(arguments.version, arguments.helm, arguments.option))
    except ReleaseError as error:
        sys.stderr.write(f"release: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
