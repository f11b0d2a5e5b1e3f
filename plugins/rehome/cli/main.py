"""The command ``rehome``: plans from a shell, by the API of your Airflow; and what people run on
the machine of that Airflow.

``rehome COMMAND --help`` explains one. The package installs it; a checkout has ``bin/rehome``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from rehome.cli import copy_ledger, dag_files, export_audit, foreign, import_settings
from rehome.cli.output import CommandError, ExitCode, clean
from rehome.cli.remote import approve, ask, plan, show, watch
from rehome.cli.verbs import VerbParser, all_verbs, register
from rehome.version import REHOME_VERSION

_ABOUT = """Plans of Kafka reassignments from a shell, by the API of your Airflow; and what is
run on the machine of that Airflow. `rehome COMMAND --help` explains one."""
MODULES = (
    *(plan, ask, approve, show, watch, foreign, dag_files, import_settings),
    *(export_audit, copy_ledger),
)
"""Each has ``verbs()``: a module with commands of its own is added here."""


def parser_of_all() -> tuple[VerbParser, dict[tuple[str, ...], VerbParser]]:
    """The parser of ``rehome``, and that of each command by its words."""
    parser = VerbParser("rehome", description=_ABOUT)
    parser.add_argument("--version", action="version", version=f"rehome {REHOME_VERSION}")
    return parser, register(parser, all_verbs(MODULES))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    parser, _ = parser_of_all()
    chosen = parser.parse_args(arguments)
    try:
        code: int = chosen.run(chosen)
        sys.stdout.flush()
    except CommandError as error:
        print(clean(f"rehome: {error}"), file=sys.stderr)
        return error.code
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:  # as of `rehome … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.FAILED
    return code
