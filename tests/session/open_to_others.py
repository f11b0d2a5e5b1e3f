"""What other users of this machine can get at."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path


def open_to_others(*roots: Path) -> Iterator[Path]:
    """Files and folders that others may read or write; what is in a folder that they may not
    enter is out of their reach, whatever its own mode is.
    """
    for path in roots:
        if path.is_symlink():
            continue
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & (stat.S_IROTH | stat.S_IWOTH):
            yield path
        if path.is_dir() and mode & stat.S_IXOTH:
            yield from open_to_others(*path.iterdir())
