"""What the commands have in common that run on until they are told to end."""

import logging
from pathlib import Path

import click

config_option = click.option(
    "--config", "config_path", type=click.Path(path_type=Path), help="YAML file; defaults if absent."
)


def log() -> None:
    """What they have to say goes to stderr."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
