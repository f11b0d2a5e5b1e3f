"""The command ``rehome``: what people run on the machine of their Airflow.

``rehome COMMAND VERB --help`` explains one. The package installs it; a checkout has ``bin/rehome``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from rehome.cli import dag_files, export_audit, import_settings
from rehome.version import REHOME_VERSION

COMMANDS = {
    ("dags", "install"): dag_files,
    ("settings", "import"): import_settings,
    ("audit", "export"): export_audit,
}
"""Each module has ``__doc__``, ``add_arguments(parser)`` and ``main(chosen)`` → exit code."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    parser = argparse.ArgumentParser("rehome", description=__doc__)
    parser.add_argument("--version", action="version", version=f"rehome {REHOME_VERSION}")
    groups = parser.add_subparsers(required=True, metavar="COMMAND")
    for (of, verb), module in COMMANDS.items():
        described = str(module.__doc__)
        first = described.partition("\n")[0]
        group = groups.add_parser(of, help=f"{verb}: {first}")
        one = group.add_subparsers(required=True, metavar="VERB").add_parser(
            verb,
            help=first,
            description=described,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(one)
        one.set_defaults(run=module.main)
    chosen = parser.parse_args(arguments)
    code: int = chosen.run(chosen)
    return code
