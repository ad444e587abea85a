"""The ``edgeshare`` command: finds the subcommand (``edgeshare NAME`` is ``command`` of ``edgeshare.cli.NAME``), loads
it alone, prints its errors as one line."""

import gc
import importlib
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import click

from edgeshare import __version__
from edgeshare.contract.errors import EdgeshareError, Unavailable

COMMANDS = {
    "sharemgr": "Shares this node's devices among their clients, or a cluster's among its pods.",
    "deviceplugin": "Advertises this node's devices to the kubelet in hundredths.",
    "labeller": "Labels this node with what accelerates it.",
    "run": "Runs a command as a client of this node's share manager.",
    "status": "Shows who has which share of this node's devices.",
    "top": "Shows the shares live.",
    "trace": "Records this node's slices, waits and hand-overs for Perfetto.",
    "doctor": "Says what is missing or wrong on this node, and what mends it.",
    "replay": "Replays recorded clusters and published experiments through the policies.",
    "demo": "Shows sharing at work on a simulated machine.",
    "simgpu": "Makes, breaks and reads simulated GPUs.",
}
"""Subcommand → its line in ``edgeshare --help``: known without importing it, because memory and start-up count."""


CLUSTER_PART, SIMULATED_MACHINE = "edgeshare[cluster]", "edgeshare-simgpu"
"""What is not installed with the rest, as pip names it."""

WHILE_LOADING = {"GRPC_VERBOSITY": "ERROR", "PYDANTIC_DISABLE_PLUGINS": "__all__"}
"""What libraries read as they are loaded: gRPC is to keep its own remarks to itself, and pydantic not to look for
plugins, for which it would read what is known of each installed package."""


@contextmanager
def loading() -> Iterator[None]:
    """While a command is loaded, sets these variables, but for those that somebody set: what `run` runs must not
    inherit them. What was loaded stays for ever, so it is made permanent: to walk over it again at the end, for
    garbage, would take a short command a fifth of its time."""
    fresh = {name: value for name, value in WHILE_LOADING.items() if name not in os.environ}
    os.environ.update(fresh)
    try:
        yield
    finally:
        for name in fresh:
            del os.environ[name]
    gc.freeze()


@contextmanager
def needing(package: str, command: str) -> Iterator[None]:
    """Raises Unavailable where what is imported meanwhile is not installed: the command needs that package."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise Unavailable(f"edgeshare {command} needs {error.name}: pip install '{package}'") from None


class LazyGroup(click.Group):
    """A group whose subcommand NAME is ``edgeshare.cli.NAME.command``, imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        with loading():
            command = importlib.import_module(f"edgeshare.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="edgeshare")
def cli() -> None:
    """Several programs share one accelerator, each with a share that holds and a memory cap that holds."""


def main() -> None:
    """The console script: exit status 0, 1 (it failed, one line says why) or 2 (wrong usage)."""
    _run("edgeshare", {})


def of_kubectl() -> None:
    """What kubectl finds as its plugin: the same, but that it shows the cluster."""
    _run("kubectl edgeshare", {name: {"cluster": True} for name in ("status", "top")})


def _run(prog_name: str, defaults: Mapping[str, Mapping[str, bool]]) -> None:
    failed = False
    try:
        cli.main(prog_name=prog_name, standalone_mode=True, default_map=defaults)
    except* EdgeshareError as errors:
        # What else failed beside them goes on, with its traceback.
        for line in dict.fromkeys(map(str, _each(errors))):
            click.echo(f"edgeshare: {line}", err=True)
        failed = True
    if failed:
        sys.exit(1)


def _each(errors: BaseExceptionGroup[EdgeshareError]) -> Iterator[EdgeshareError]:
    """The errors in a group, and in the groups within it."""
    for each in errors.exceptions:
        yield from _each(each) if isinstance(each, BaseExceptionGroup) else (each,)
