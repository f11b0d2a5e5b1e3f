"""The command ``rehome``: plans from a shell, by the API of your Airflow; and what people run on
the machine of that Airflow.

``rehome COMMAND --help`` explains one. The package installs it; a checkout has ``bin/rehome``.
"""

from __future__ import annotations

from collections.abc import Sequence

from rehome.cli import dag_files, export_audit, import_settings
from rehome.cli.verbs import VerbParser, all_verbs, register
from rehome.version import REHOME_VERSION

MODULES = (dag_files, import_settings, export_audit)
"""Each has ``verbs()``: a module with commands of its own is added here."""


def parser_of_all() -> tuple[VerbParser, dict[tuple[str, ...], VerbParser]]:
    """The parser of ``rehome``, and that of each command by its words."""
    parser = VerbParser("rehome", description=__doc__)
    parser.add_argument("--version", action="version", version=f"rehome {REHOME_VERSION}")
    return parser, register(parser, all_verbs(MODULES))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    parser, _ = parser_of_all()
    chosen = parser.parse_args(arguments)
    code: int = chosen.run(chosen)
    return code
