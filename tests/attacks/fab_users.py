"""Makes users of every role of FAB in the Airflow of this environment; its passwords are there.

python -m tests.attacks.fab_users NAME:ROLE...
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path


def main() -> None:
    """Add each, with a password that is its own name, and write the passwords down."""
    from airflow.providers.fab.auth_manager.cli_commands.utils import get_application_builder

    file = Path(os.environ["AIRFLOW_HOME"]) / "passwords.json"
    passwords = json.loads(file.read_text())
    with get_application_builder() as builder:
        manager = builder.sm
        manager.sync_roles()
        for name, role in (each.split(":") for each in sys.argv[1:]):
            password = passwords.setdefault(name, f"{name}-{os.urandom(9).hex()}")
            found = manager.find_role(role)
            mail = f"{name}@example.com"
            assert manager.add_user(name, name, name, mail, found, password), name
    file.write_text(json.dumps(passwords))


if __name__ == "__main__":
    main()
