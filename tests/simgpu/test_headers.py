"""Our declarations against NVIDIA's own headers, which PyPI has as wheels."""

import re
import subprocess
import sysconfig
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DRIVER = ROOT / "cuda_hook/driver_api.h"
NVML = ROOT / "simgpu/nvml/nvml_api.h"
WHEELS = {"12": "nvidia-cuda-runtime-cu12", "13": "nvidia-cuda-runtime", "nvml": "nvidia-nvml-dev-cu12"}
FOLDERS = {"12": "cuda_runtime/include", "13": "cu13/include", "nvml": "nvml_dev/include"}


def headers(name: str) -> Path:
    """The folder of NVIDIA's headers, or the test is skipped."""
    for root in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        folder = Path(root) / "nvidia" / FOLDERS[name]
        if folder.is_dir():
            return folder
    pytest.skip(f"NVIDIA's headers are not here: pip install {WHEELS[name]}")


def compiled(source: str, include: Path) -> str:
    """What the compiler says to a source; empty when it is content."""
    flags = ["-std=c11", "-fsyntax-only", "-Werror", "-Wno-deprecated-declarations", f"-I{include}", f"-I{ROOT}"]
    done = subprocess.run(
        ["cc", *flags, "-x", "c", "-"], input=source, capture_output=True, text=True, check=False, timeout=120
    )
    return done.stderr


def without_comments(path: Path) -> str:
    return re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)


def numbers(path: Path) -> list[tuple[str, str]]:
    """Every enumerator and its value."""
    return re.findall(r"\b((?:CU|NVML)[A-Z]*_\w+) = (-?\w+)", without_comments(path))


def layouts(path: Path) -> dict[str, list[str]]:
    """Every structure that has members, by the name of its type, with its members."""
    found = {}
    for body, name in re.findall(r"typedef (?:struct|union) \w+ \{(.*?)\n\} (\w+);", without_comments(path), re.DOTALL):
        # Members of members have other offsets, and are checked by the size of what holds them.
        flat = body
        while "{" in flat:
            flat = re.sub(r"\{[^{}]*\}", "", flat)
        members = re.findall(r"(\w+)(?:\[[^\]]*\])*\s*[,;]", flat)
        # What is reserved shrinks from version to version.
        found[name] = [member for member in members if not member.startswith("reserved")]
    return found


def measured(path: Path) -> list[tuple[str, int]]:
    """(C expression, value) for sizes and offsets, as our own declarations have them."""
    expressions = []
    for name, members in layouts(path).items():
        expressions.append(f"sizeof({name})")
        expressions += [f"offsetof({name}, {member})" for member in members]
    lines = "\n".join(f'printf("%zu\\n", {each});' for each in expressions)
    source = f'#include <stdio.h>\n#include <stddef.h>\n#include "{path}"\nint main(void) {{ {lines} }}'
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "layout"
        subprocess.run(["cc", "-std=c11", "-o", program, "-x", "c", "-"], input=source, text=True, check=True)
        values = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()
    return list(zip(expressions, map(int, values), strict=True))


def assertions(path: Path, known: str) -> str:
    lines = [f'_Static_assert((long long){name} == {value}, "{name}");' for name, value in numbers(path)]
    lines += [f'_Static_assert({expression} == {value}, "{expression}");' for expression, value in measured(path)]
    return f"{known}\n#include <stddef.h>\n" + "\n".join(lines)


CUDA = "#define __CUDA_API_VERSION_INTERNAL\n#include <cuda.h>"
NVML_HEADER = "#define NVML_NO_UNVERSIONED_FUNC_DEFS\n#include <nvml.h>"


@pytest.mark.parametrize("version", ["12", "13"])
def test_the_drivers_numbers_and_layouts_are_nvidias(version: str) -> None:
    assert len(numbers(DRIVER)) > 200
    assert len(measured(DRIVER)) > 100
    assert compiled(assertions(DRIVER, CUDA), headers(version)) == ""


@pytest.mark.parametrize("version", ["12", "13"])
def test_the_drivers_prototypes_are_nvidias(version: str) -> None:
    source = f'{CUDA}\n#define EDGESHARE_DRIVER_API_NO_TYPES\n#include "{DRIVER}"\n'
    assert compiled(source, headers(version)) == ""


def test_nvmls_numbers_layouts_and_prototypes_are_nvidias() -> None:
    assert compiled(assertions(NVML, NVML_HEADER), headers("nvml")) == ""
    source = f'{NVML_HEADER}\n#define SIMGPU_NVML_NO_TYPES\n#include "{NVML}"\n'
    assert compiled(source, headers("nvml")) == ""


def test_a_wrong_declaration_would_be_seen() -> None:
    include = headers("12")
    assert "conflicting types" in compiled(f"{CUDA}\nCUresult cuInit(int Flags, int more);\n", include)
    assert compiled(f'{CUDA}\n_Static_assert(CUDA_ERROR_OUT_OF_MEMORY == 3, "number");\n', include) != ""


def test_versions_in_the_list_of_symbols_are_nvidias() -> None:
    """Each (name, version) is a typedef of cudaTypedefs.h."""
    known = re.findall(r"PFN_(\w+?)_v(\d+)(?:_ptsz|_ptds)?\)", (headers("13") / "cudaTypedefs.h").read_text())
    text = (ROOT / "simgpu/driver/base/symbols.def").read_text()
    plain = re.findall(r"^PLAIN\((\w+), (\d+),", text, re.MULTILINE)
    dual = re.findall(r"^PT[DS][SZ]\((\w+), (\d+), (\d+),", text, re.MULTILINE)
    listed = {*plain, *((name, version) for name, version, _ in dual), *((name, since) for name, _, since in dual)}
    assert len(listed) > 150
    # Those have headers of their own, cudaProfilerTypedefs.h and cudaGLTypedefs.h.
    profiler = {(f"cuProfiler{name}", "4000") for name in ("Initialize", "Start", "Stop")}
    graphics = {(f"cuGraphicsGLRegister{name}", "3000") for name in ("Buffer", "Image")}
    assert listed <= {*known, *profiler, *graphics}
