"""``edgeshare simgpu``: makes a simulated machine, injects faults, shows what was executed."""

import dataclasses
import json
import os
import time
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from edgeshare.cli import SIMULATED_MACHINE, needing
from edgeshare.contract.errors import NotFound
from edgeshare.contract.units import MIB

with needing(SIMULATED_MACHINE, "simgpu"):
    from simgpu.create import CUDA_VERSION, DRIVERS, create, destroy
    from simgpu.environment import variables
    from simgpu.machine import DEFAULT_DIRECTORY, SCHEDULING, Machine
    from simgpu.models import MODELS
    from simgpu.nvml_profiles import ANSWERS, NVML_PROFILES
    from simgpu.paces import PACES

machine_option = click.option(
    "--machine",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="SIMGPU_MACHINE",
    default=DEFAULT_DIRECTORY,
    show_default=True,
    show_envvar=True,
    help="The machine's directory.",
)
gpu_option = click.option("--gpu", type=int, default=0, show_default=True, help="The GPU's index.")
json_option = click.option("--json", "as_json", is_flag=True, help="As JSON.")


@click.group()
def command() -> None:
    """Makes, breaks and reads simulated GPUs."""


@command.command("create")
@machine_option
@click.option("--gpus", type=int, default=2, show_default=True, help="How many.")
@click.option(
    "--model",
    "models",
    type=click.Choice(list(MODELS)),
    multiple=True,
    default=["t4"],
    show_default=True,
    help="Of all GPUs; given several times, of each.",
)
@click.option("--memory-mib", type=int, help="Memory of each GPU.  [default: the model's]")
@click.option("--reserved-mib", type=click.IntRange(min=0), default=0, show_default=True, help="What the driver keeps.")
@click.option(
    "--mig",
    "parts",
    type=(int, str),
    multiple=True,
    metavar="GPU PROFILE",
    help="A MIG device, such as 0 1g.5gb; only NVML lists them.",
)
@click.option("--scheduling", type=click.Choice(SCHEDULING), default="fifo", show_default=True)
@click.option(
    "--pace", type=click.Choice(list(PACES)), help="What calls and context switches cost.  [default: nothing]"
)
@click.option("--overlap", is_flag=True, help="Within a context kernels run side by side, and copies beside them.")
@click.option("--nvml", type=click.Choice(list(NVML_PROFILES)), help="What NVML refuses.  [default: nothing]")
@click.option(
    "--cuda", type=click.Choice(list(DRIVERS)), help=f"CUDA version.  [default: the profile's, or {CUDA_VERSION}]"
)
def create_command(
    directory: Path, cuda: str | None, models: tuple[str, ...], parts: tuple[tuple[int, str], ...], **plan: Any
) -> None:
    """Makes a machine. Its processes find it with the variables that `edgeshare simgpu env` prints."""
    mig: dict[int, list[str]] = {}
    for gpu, profile in parts:
        mig.setdefault(gpu, []).append(profile)
    create(directory.absolute(), cuda_version=cuda, model=models, mig=mig, **plan)
    for each in Machine(directory).gpus():
        click.echo(f"{each.index} {each.uuid} {each.name} {each.memory_bytes // MIB} MiB")


@command.command("destroy")
@machine_option
def destroy_command(directory: Path) -> None:
    """Removes a machine. Processes that use it go on until they end."""
    destroy(directory)


@command.command("env")
@machine_option
def env_command(directory: Path) -> None:
    """Prints the variables that lead a program to the machine, for the shell's eval."""
    for name, value in variables(_existing(directory)).items():
        click.echo(f"export {name}={value}")


@command.command("run", context_settings={"ignore_unknown_options": True})
@machine_option
@click.option("--tag", help="A name for the process, shown by `state`.")
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED)
def run_command(directory: Path, tag: str | None, argv: tuple[str, ...]) -> None:
    """Runs a command on the machine. Its exit status is the command's."""
    environment = {**os.environ, **variables(_existing(directory))}
    if tag is not None:
        environment["SIMGPU_TAG"] = tag
    try:
        os.execvpe(argv[0], argv, environment)
    except OSError as error:
        raise NotFound(f"{argv[0]} cannot be run: {error.strerror}") from error


@command.command("state")
@machine_option
@json_option
def state_command(directory: Path, as_json: bool) -> None:
    """Shows each GPU and what each process executed on it."""
    machine = Machine(directory)
    gpus, processes = machine.gpus(), machine.processes()
    if as_json:
        state = {
            "now_ns": time.monotonic_ns(),
            "scheduling": machine.scheduling,
            "overlap": machine.overlap,
            "pace": dataclasses.asdict(machine.pace) if machine.pace else None,
            "driver_version": machine.driver_version,
            "nvml": machine.nvml or None,
            "nvml_answers": machine.nvml_answers,
            "gpus": [dataclasses.asdict(gpu) for gpu in gpus],
            "processes": [dataclasses.asdict(process) for process in processes],
        }
        click.echo(json.dumps(state))
        return
    pace = f", pace {machine.pace.name}" if machine.pace else ""
    nvml = f", NVML {machine.nvml}" if machine.nvml else ""
    title = f"{machine.scheduling}{', engines overlap' if machine.overlap else ''}{pace}{nvml}"
    table = Table("GPU", "UUID", "model", "memory MiB", "queued", "busy s", "health", title=title)
    for gpu in gpus:
        health = "lost" if gpu.lost else f"XID {gpu.xids[-1]}" if gpu.xids else "ok"
        memory = f"{gpu.used_bytes // MIB} / {gpu.memory_bytes // MIB}"
        table.add_row(str(gpu.index), gpu.uuid, gpu.name, memory, str(gpu.queued), f"{gpu.busy_ns / 1e9:.3f}", health)
    console = Console()
    console.print(table)
    table = Table("pid", "tag", "name", "alive", "GPU", "executed s", "entries", "memory MiB")
    for process in processes:
        for index in range(machine.gpu_count):
            if process.executed_ns[index] or process.memory_bytes[index]:
                table.add_row(
                    str(process.pid),
                    process.tag,
                    process.name,
                    "yes" if process.alive else "no",
                    str(index),
                    f"{process.executed_ns[index] / 1e9:.3f}",
                    str(process.entries[index]),
                    str(process.memory_bytes[index] // MIB),
                )
    console.print(table)


@command.command("log")
@machine_option
@gpu_option
@click.option("--since", type=click.IntRange(min=0), default=0, help="The cursor that the last call printed.")
@json_option
def log_command(directory: Path, gpu: int, since: int, as_json: bool) -> None:
    """Prints the stretches of time in which a GPU ran something, and for whom."""
    machine = Machine(directory)
    if not 0 <= gpu < machine.gpu_count:
        raise NotFound(f"there is no GPU {gpu}: the machine has {machine.gpu_count}, numbered from 0")
    intervals, cursor = machine.log(gpu, since)
    tags = machine.tags()
    if as_json:
        rows = [{**dataclasses.asdict(each), "tag": tags.get(each.process, "")} for each in intervals]
        click.echo(json.dumps({"cursor": cursor, "intervals": rows}))
        return
    for each in intervals:
        length = (each.end_ns - each.begin_ns) / 1000
        click.echo(f"{each.begin_ns} {length:10.1f} µs {each.kind} {tags.get(each.process, '')} #{each.entry}")


@command.group("fault")
def fault() -> None:
    """Injects a fault into a GPU."""


@fault.command("xid")
@machine_option
@gpu_option
@click.argument("number", type=int)
def xid_command(directory: Path, gpu: int, number: int) -> None:
    """Reports an XID. Fatal ones (48, 62, 74, 79, 94, 95, 119) end the GPU's contexts; 79 loses the GPU."""
    Machine(directory).inject_xid(gpu, number)


@fault.command("lost")
@machine_option
@gpu_option
def lost_command(directory: Path, gpu: int) -> None:
    """The GPU falls off the bus (XID 79)."""
    Machine(directory).inject_lost(gpu)


@fault.command("ecc")
@machine_option
@gpu_option
@click.option("--double", is_flag=True, help="A double-bit error, which cannot be corrected.")
def ecc_command(directory: Path, gpu: int, double: bool) -> None:
    """An ECC memory error."""
    Machine(directory).inject_ecc(gpu, double)


@fault.command("remap")
@machine_option
@gpu_option
@click.option("--failed", is_flag=True, help="It could not be done; without it, it waits for a reset.")
def remap_command(directory: Path, gpu: int, failed: bool) -> None:
    """A row of the GPU's memory is to be remapped."""
    Machine(directory).inject_remap(gpu, failed)


@fault.command("temperature")
@machine_option
@gpu_option
@click.argument("celsius", type=int)
def temperature_command(directory: Path, gpu: int, celsius: int) -> None:
    """The GPU is so hot, until this is called again; 0: as its load makes it."""
    Machine(directory).set_temperature(gpu, celsius)


@fault.command("silence")
@machine_option
@gpu_option
@click.option("--over", is_flag=True, help="They come back again.")
def silence_command(directory: Path, gpu: int, over: bool) -> None:
    """Calls of NVML about the GPU do not come back."""
    Machine(directory).set_silent(gpu, not over)


@fault.command("nvml")
@machine_option
@click.argument("function")
@click.argument("answer", type=click.Choice(list(ANSWERS)))
def nvml_command(directory: Path, function: str, answer: str) -> None:
    """A function of NVML, such as nvmlDeviceGetName, answers otherwise from now on."""
    Machine(directory).set_nvml_answer(function, answer)


@fault.command("file")
@machine_option
@gpu_option
@click.option("--back", is_flag=True, help="It comes back.")
def file_command(directory: Path, gpu: int, back: bool) -> None:
    """The GPU's device file (dev/nvidiaN in the machine's directory) goes."""
    machine = Machine(directory)
    (machine.restore_file if back else machine.remove_file)(gpu)


@command.command("reset")
@machine_option
@gpu_option
def reset_command(directory: Path, gpu: int) -> None:
    """Resets a GPU, as `nvidia-smi --gpu-reset` does: a lost one is back. Ends the contexts on it."""
    Machine(directory).reset(gpu)


def _existing(directory: Path) -> Path:
    """The directory of a machine that can be opened. Raises NotFound, Unavailable."""
    return Machine(directory).directory.absolute()
