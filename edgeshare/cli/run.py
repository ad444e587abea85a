"""``edgeshare run``: a command as a client of this node's share manager, with no Kubernetes."""

import os
import secrets
import shlex
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

import cuda_hook
from edgeshare.cli.child import Child
from edgeshare.cli.device_choice import Choice, choice_of, choose_devices
from edgeshare.client import ManagerClient
from edgeshare.contract.accelerator_kind import GPU, AcceleratorKind
from edgeshare.contract.devices import NVML_PREFIXES
from edgeshare.contract.errors import EdgeshareError, NoRoom, NotFound, Unavailable
from edgeshare.contract.names import HOOK_LIBRARY, RUNTIME_DIR
from edgeshare.contract.share_class import BATCH, BY_WORD, NUMBERS
from edgeshare.contract.text import in_one_line
from edgeshare.contract.units import (
    COMMAND_CHARACTERS,
    check_limit_percent,
)
from edgeshare.loadable import map_to_run
from edgeshare.v1.allocations_pb2 import (
    Allocation,
    HoldAllocationResponse,
    Owner,
    ShareClass,
)

SEPARATORS = " :$"
"""The loader takes a name in LD_PRELOAD apart at the first two, and puts something else for what follows the last."""

RETRY_S = 1.0
"""Between two attempts to get the allocation back, when somebody else took its place while the manager
was away, or a manager that is there cannot give it."""


class Holder(threading.Thread):
    """Holds the allocation as long as the command runs, also across a restart of the manager.

    It lets the command begin once the allocation is there; where it cannot be had, ``error`` says why and
    the command never begins.
    """

    def __init__(
        self, client: ManagerClient, child: Child, argv: list[str], wanted: Allocation, choice: Choice
    ) -> None:
        super().__init__(name="hold", daemon=True)
        self.error: EdgeshareError | None = None
        self._client = client
        self._child = child
        self._argv = argv
        self._wanted = wanted
        self._choice = choice
        self._ending = threading.Event()

    def end(self) -> None:
        """Gives the allocation back."""
        self._ending.set()
        self._client.close()
        self.join()

    def run(self) -> None:
        try:
            answers = self._hold_first()
        except EdgeshareError as error:
            if not self._ending.is_set():
                self.error = error
                self._child.give_up()
            return
        lost = ""
        while True:
            try:
                for _ in answers:
                    lost = ""
                    _say("holding the share again")
            except EdgeshareError as error:
                if self._ending.is_set():
                    return
                if str(error) != lost:
                    _say(f"lost the share: {error}")
                if isinstance(error, NotFound):
                    # Taken away on purpose, or with its device: then it is not ours to take back.
                    return
                # The first time it is the manager that went, and gRPC waits for the next one.
                if lost or not isinstance(error, Unavailable):
                    self._ending.wait(RETRY_S)
                lost = str(error)
            answers = self._client.hold(self._wanted, wait_for_manager=True)

    def _hold_first(self) -> Iterator[HoldAllocationResponse]:
        while True:
            self._wanted.device_ids[:] = choose_devices(self._client.status().devices, self._choice)
            answers = self._client.hold(self._wanted, wait_for_manager=False)
            try:
                answer = next(answers)
            except NoRoom:
                if self._choice.name is None:
                    # Somebody was faster with the device that had room: look again, until none has.
                    continue
                raise
            # With the defaults filled in: it is to be the same after a restart of the manager.
            self._wanted = answer.allocation
            self._child.begin(self._argv, environment(os.environ, answer, hook_library(), self._choice.kind))
            return answers


def hook_library() -> Path:
    """The library that a client preloads; raises Unavailable where it was not built, or the loader would pass it over
    and run the program without it."""
    path = Path(cuda_hook.__file__).with_name(HOOK_LIBRARY)
    if not path.exists():
        raise Unavailable(f"{path} is not there: build it with 'make build', or install the wheel")
    if any(each in str(path) for each in SEPARATORS):
        raise Unavailable(f"{path} has a space, a colon or a dollar in it, which LD_PRELOAD cannot name: move it")
    map_to_run(path).close()
    return path


def environment(
    base: Mapping[str, str], answer: HoldAllocationResponse, library: Path, kind: AcceleratorKind = GPU
) -> dict[str, str]:
    """The command's environment: ours, with its allocation, its devices and the hook before any other
    preload."""
    folder = str(Path(answer.socket_path).parent)
    preloads = [str(library), base.get("LD_PRELOAD", "")]
    hooked = {**base, "LD_PRELOAD": ":".join(filter(None, preloads))}
    # An id that the driver does not know would leave the program without a GPU.
    known = [device_id for device_id in answer.allocation.device_ids if device_id.startswith(NVML_PREFIXES)]
    visible = {kind.visible_variable: ",".join(known)} if kind.visible_variable and known else {}
    return {**hooked, kind.hook_dir_variable: folder, **visible}


def _say(text: str) -> None:
    click.echo(f"edgeshare run: {text}", err=True)


@click.command("run", context_settings={"allow_interspersed_args": False})
@click.option(
    "--runtime-dir",
    type=click.Path(path_type=Path),
    default=RUNTIME_DIR,
    show_default=True,
    help="Where the share manager has its sockets.",
)
@click.option(
    "--percent",
    type=int,
    required=True,
    help="Guaranteed share of a GPU's time, 1 to 99; or 100, 200, … for whole GPUs.",
)
@click.option(
    "--limit",
    "limit_percent",
    type=int,
    help="Ceiling while the GPU has idle time; the manager's default if absent.",
)
@click.option(
    "--memory-mib",
    type=click.IntRange(min=1),
    help="Cap on memory of each GPU; the same fraction of it as of its time if absent.",
)
@click.option("--gpu", help="Index or UUID of the GPU; the one with most of it free if absent.")
@click.option(
    "--tpu",
    is_flag=False,
    flag_value="",
    metavar="[INDEX|ID]",
    help="An EdgeTPU instead of a GPU: this one, or the one with most of it free.",
)
@click.option("--class", "share_class", type=click.Choice(list(BY_WORD)), default=BATCH, show_default=True)
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND…")
def command(
    *,
    runtime_dir: Path,
    percent: int,
    limit_percent: int | None,
    memory_mib: int | None,
    gpu: str | None,
    tpu: str | None,
    share_class: str,
    argv: tuple[str, ...],
) -> None:
    """Runs COMMAND with a guaranteed share of a GPU, or of an EdgeTPU.

    Its exit status is the command's, or 128 + n where signal n ended it; signals are passed on to it.
    """
    choice = choice_of(percent, memory_mib, gpu, tpu)
    if limit_percent is not None:
        check_limit_percent(limit_percent, choice.request_percent)
    hook_library()
    wanted = Allocation(
        id=f"run-{secrets.token_hex(6)}",
        request_percent=choice.request_percent,
        limit_percent=limit_percent or 0,
        share_class=ShareClass.ValueType(NUMBERS[BY_WORD[share_class]]),
        memory_mib=choice.memory_mib,
        owner=Owner(command=in_one_line(shlex.join(argv), COMMAND_CHARACTERS)),
    )
    sys.exit(run_holding(wanted, choice, list(argv), runtime_dir))


def run_holding(wanted: Allocation, choice: Choice, argv: list[str], runtime_dir: Path) -> int:
    """Runs a command while an allocation is held for it; its exit status, as ``Child.wait`` tells it. Raises what the
    manager, or the choice, says against it."""
    # Before the client: gRPC has threads.
    child = Child()
    holder = Holder(ManagerClient(runtime_dir.absolute()), child, argv, wanted, choice)
    holder.start()
    status = child.wait()
    holder.end()
    if holder.error is not None:
        raise holder.error
    return status
