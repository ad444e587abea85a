"""What commands over the virtual clock have in common."""

from typing import Any

import click

from edgeshare.contract.errors import EdgeshareError


class Command(click.Command):
    """One whose errors are a line each: exit status 1, and 2 where an option is wrong."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click's. Raises UsageError, which says no more than what is wrong."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            # With a context it would be told below how the command is used.
            error.ctx = None
            raise

    def invoke(self, ctx: click.Context) -> Any:
        """As click's. Raises ClickException for what is an error of ours."""
        try:
            return super().invoke(ctx)
        except EdgeshareError as error:
            raise click.ClickException(str(error)) from None
