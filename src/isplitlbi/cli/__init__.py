"""The command line: each command parses, calls the library and prints.

Results go to standard output, everything else to standard error.

    app          all commands, in the order in which --help lists them
    votes        the commands on files of votes: check, fit, evaluate, simulate
    models       the commands on a fitted model: rank, abnormal, predict, recommend, report
    decomposing  what users' deviations are made of: decompose
    demo         the simulated study
    options      the options that several commands share, and how votes are read
    settings     the settings of a model that is to be fitted, as options
    flags        the settings of the library, spelled as options
    exits        how a command ends: errors become sentences and exit codes
"""

from isplitlbi.cli import exits

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    exits.run(_app)


def _app() -> None:
    """Run the application, whose loading may be interrupted like all that it does."""
    from isplitlbi.cli.app import app

    app()
