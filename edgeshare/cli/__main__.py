"""``python -m edgeshare.cli``: the ``edgeshare`` command of this very installation."""

from edgeshare.cli import main

main()
