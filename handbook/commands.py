"""The page of the command line: every command, by its parser."""

from __future__ import annotations

from collections.abc import Iterator

from handbook.markdown import table
from handbook.sources import member_docs
from rehome.cli.main import parser_of_all
from rehome.cli.output import ExitCode
from rehome.cli.remote import options
from rehome.cli.verbs import VerbParser

_VARIABLES = (
    (options.URL_VARIABLE, f"address of Airflow's UI; default: `{options.DEFAULT_URL}`"),
    (options.TOKEN_VARIABLE, "a token of Airflow's, in place of a login"),
    (options.USER_VARIABLE, "who logs in, where there is no token"),
    (options.PASSWORD_VARIABLE, "their password; else it is asked for in the terminal"),
    ("NO_COLOR", "set to anything: no colours"),
)


def commands_page() -> str:
    """Markdown: what all have in common, exit codes, then each command."""
    return "\n\n".join(_parts()) + "\n"


def _parts() -> Iterator[str]:
    yield "# Commands"
    yield (
        "`rehome COMMAND --help` prints the same. The package installs the command; a checkout has "
        "`python bin/rehome`. [How to use it](../howto/shell.md)."
    )
    variables = [(f"`{name}`", text) for name, text in _VARIABLES]
    yield "## Environment"
    yield table(("variable", "meaning"), variables)
    yield "## Exit codes"
    codes = [(f"`{code}`", text) for code, text in member_docs(ExitCode).items()]
    yield table(("code", "meaning"), codes)
    for words, parser in parser_of_all()[1].items():
        yield f"## `rehome {' '.join(words)}`"
        yield from _command(parser)


def _command(parser: VerbParser) -> Iterator[str]:
    assert parser.verb is not None
    rows = [(f"`{name}`", about) for name, about in parser.arguments()]
    yield from parser.verb.about.strip().split("\n\n")
    yield table(("argument", "meaning"), rows)
