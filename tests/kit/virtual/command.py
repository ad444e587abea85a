"""What commands over the virtual clock have in common."""

from typing import Any

import click

from edgeshare.contract.errors import EdgeshareError


class Command(click.Command):
    """One whose errors are a line each: exit status 1, and 2 where an option is wrong."""

    def invoke(self, ctx: click.Context) -> Any:
        """As click's. Raises ClickException for what is an error of ours."""
        try:
            return super().invoke(ctx)
        except EdgeshareError as error:
            raise click.ClickException(str(error)) from None
