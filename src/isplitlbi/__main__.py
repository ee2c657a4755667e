"""Run the command line with ``python -m isplitlbi``."""

from isplitlbi.cli.commands import main

main()
