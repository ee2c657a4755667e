"""Run the command line with ``python -m isplitlbi``."""

from isplitlbi.cli import main

main()
