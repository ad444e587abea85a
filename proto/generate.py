"""Generates the gRPC code from proto/ into the packages, or says which of it is out of date.

python proto/generate.py           write it
python proto/generate.py --check   exit 1 and name the files that differ from what is generated now
"""

import sys
import tempfile
from pathlib import Path

from grpc_tools import protoc

PROTO = Path(__file__).parent
ROOT = PROTO.parent


def generate(out: Path) -> None:
    """Runs protoc over every file of proto/, into ``out``; raises RuntimeError where it refuses a file."""
    sources = sorted(str(path.relative_to(PROTO)) for path in PROTO.rglob("*.proto"))
    outputs = [f"--{kind}_out={out}" for kind in ("python", "grpc_python", "mypy", "mypy_grpc")]
    if protoc.main(["protoc", f"-I{PROTO}", *outputs, *sources]) != 0:
        raise RuntimeError("protoc refused a file of proto/; it said why above")


def main() -> int:
    """The command; returns its exit status."""
    if sys.argv[1:] not in ([], ["--check"]):
        print("usage: python proto/generate.py [--check]", file=sys.stderr)
        return 2
    if not sys.argv[1:]:
        generate(ROOT)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder)
        generate(fresh)
        stale = [
            path.relative_to(fresh)
            for path in sorted(fresh.rglob("*.py*"))
            if not (ROOT / path.relative_to(fresh)).is_file()
            or (ROOT / path.relative_to(fresh)).read_bytes() != path.read_bytes()
        ]
    for name in stale:
        print(f"{name} is not what proto/ says: run `make proto`", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
