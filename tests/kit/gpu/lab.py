"""Runs workloads side by side on a GPU, with shares of a manager or without, and collects what they say."""

import contextlib
import json
import selectors
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WORKLOADS = Path(__file__).parent / "workloads"
EDGESHARE = str(Path(sys.executable).with_name("edgeshare"))

READY_S = 300.0
"""Compilers of kernels take their time; only to end a run that hangs."""
END_S = 120.0

MODULES = {
    "bindings": "cuda.bindings.driver",
    "numba": "numba.cuda",
    "cupy": "cupy",
    "torch": "torch",
    "jax": "jax",
}
"""What a workload imports."""


@dataclass(frozen=True)
class Job:
    """A workload, and its share; ``percent`` None: without edgeshare."""

    framework: str
    mode: str
    arguments: tuple[str, ...] = ()
    percent: int | None = None
    latency: bool = False
    memory_mib: int | None = None
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return "-".join([self.framework, self.mode, *(word for word in self.arguments if not word.startswith("-"))])


class Running:
    """A job that was started."""

    def __init__(self, name: str, argv: list[str], environment: Mapping[str, str], log: Path) -> None:
        self.name = name
        self._log = log
        with log.open("w") as stderr:
            self.process = subprocess.Popen(
                argv, env=dict(environment), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True
            )

    def says(self, seconds: float) -> dict[str, Any]:
        """The next line of its output. Raises AssertionError with its last words when there is none in that time."""
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            assert selector.select(seconds), f"{self.name} says nothing: {self.last_words()}"
        line = self.process.stdout.readline()
        assert line, f"{self.name} ended: {self.last_words()}"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def tell(self, order: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(order + "\n")
        self.process.stdin.flush()

    def last_words(self) -> str:
        return self._log.read_text()[-2000:]

    def end(self) -> None:
        """Waits for its end, and kills it where that does not come."""
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Lab:
    """A manager on this machine's GPUs and the workloads on the first of them."""

    def __init__(self, folder: Path, environment: Mapping[str, str], pythons: Sequence[str], gpu: str = "0") -> None:
        """``pythons``: interpreters to look for frameworks in, the first that has one is used."""
        self.folder = folder
        self._environment = dict(environment)
        self._pythons = list(dict.fromkeys(pythons))
        self._gpu = gpu
        self._runtime_dir = folder / "run"
        self._manager: subprocess.Popen[str] | None = None
        self._found: dict[str, str | None] = {}
        self._runs = 0

    def start(self) -> None:
        """Starts the manager; raises AssertionError with what it said where it does not get ready."""
        log = self.folder / "manager.log"
        directories = ["--runtime-dir", str(self._runtime_dir), "--state-dir", str(self.folder / "state")]
        with log.open("w") as stderr:
            self._manager = subprocess.Popen(
                [EDGESHARE, "sharemgr", "node", *directories],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        assert self._manager.stdout is not None
        assert "ready" in self._manager.stdout.readline(), log.read_text()

    def close(self) -> None:
        if self._manager is None:
            return
        self._manager.terminate()
        self._manager.communicate(timeout=END_S)

    def python(self, framework: str) -> str | None:
        """The interpreter that can import a framework; None: there is none."""
        if framework not in self._found:
            works = (python for python in self._pythons if self._imports(python, MODULES[framework]))
            self._found[framework] = next(works, None)
        return self._found[framework]

    def versions(self, framework: str) -> str:
        """Of the framework, as it says itself."""
        python = self.python(framework)
        assert python is not None
        top = MODULES[framework].partition(".")[0]
        program = f"import {MODULES[framework]}, {top}; print(getattr({top}, '__version__', ''))"
        done = subprocess.run(
            [python, "-c", program], env=self._environment, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def once(self, job: Job) -> dict[str, Any]:
        """What a job that ends by itself says."""
        running = self._started(job)
        try:
            return running.says(READY_S)
        finally:
            running.end()

    def printed(self, argv: Sequence[str], percent: int) -> str:
        """What a program with a share prints until it ends."""
        options = ["run", "--runtime-dir", str(self._runtime_dir), "--percent", str(percent), "--gpu", self._gpu]
        done = subprocess.run(
            [EDGESHARE, *options, "--", *argv],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=READY_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def side_by_side(self, jobs: Sequence[Job], settle_s: float, measure_s: float) -> list[dict[str, Any]]:
        """What each job did in the same ``measure_s`` seconds, ``settle_s`` after all of them began."""
        running: list[Running] = []
        try:
            for job in jobs:
                running.append(self._started(job))
            for each in running:
                assert each.says(READY_S) == {"ready": True}, each.name
            for order, seconds in (("go", settle_s), ("mark", measure_s), ("stop", 0.0)):
                for each in running:
                    each.tell(order)
                time.sleep(seconds)
            return [each.says(END_S) for each in running]
        finally:
            for each in running:
                each.end()

    def _imports(self, python: str, module: str) -> bool:
        try:
            done = subprocess.run(
                [python, "-c", f"import {module}"], env=self._environment, capture_output=True, check=False
            )
        except OSError:
            return False
        return done.returncode == 0

    def _started(self, job: Job) -> Running:
        python = self.python(job.framework)
        assert python is not None, f"{job.framework} is not installed in any of {self._pythons}"
        self._runs += 1
        argv = [python, str(WORKLOADS / f"{job.framework}_work.py"), job.mode, *job.arguments]
        if job.percent is not None:
            share = ["--percent", str(job.percent), "--gpu", self._gpu]
            memory = ["--memory-mib", str(job.memory_mib)] if job.memory_mib else []
            urgent = ["--class", "latency"] if job.latency else []
            options = ["run", "--runtime-dir", str(self._runtime_dir), *share, *memory, *urgent]
            argv = [EDGESHARE, *options, "--", *argv]
        log = self.folder / f"{self._runs}-{job.name}.log"
        environment = {**self._environment, "SIMGPU_TAG": f"job{self._runs}", **job.variables}
        if job.percent is None:
            environment.setdefault("CUDA_VISIBLE_DEVICES", self._gpu)
        return Running(job.name, argv, environment, log)
