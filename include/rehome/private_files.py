"""Files and folders on this machine that are closed to its other users."""

from __future__ import annotations

import logging
import os
import stat
from contextlib import suppress
from functools import cache
from pathlib import Path

PRIVATE_FILE = 0o600
HOLDING_FOLDER = 0o750
"""Of a folder that holds such files: who is of its group may look for what is open to it."""
_OTHERS, _GROUP, _GROUP_WRITES = 0o007, 0o070, 0o020

log = logging.getLogger(__name__)


def private_file(path: Path) -> None:
    """See that a file is there and that only its owner may read or write it.

    :raises OSError: it cannot be made.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE_FILE))
    except FileExistsError:
        close_file(path)


def close_file(path: Path) -> None:
    """Take from others, and from its group, what they may do with a file, if it is there.

    A file that its group may write is shared on purpose: only others lose their access.
    """
    mode = _mode(path)
    _take(path, mode, _OTHERS if mode & _GROUP_WRITES else _OTHERS | _GROUP)


def folder(path: Path, mode: int = HOLDING_FOLDER) -> None:
    """See that a folder is there; a new one has exactly this mode, whatever the umask.

    One from before loses what others may do in it beyond the mode; what its group may do stays.

    :raises OSError: it cannot be made.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=mode & 0o700)
        path.chmod(mode)
    except FileExistsError:
        if path.is_dir():
            _take(path, _mode(path), _OTHERS & ~mode)


def _mode(path: Path) -> int:
    """0 = it is not there."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return 0


def _take(path: Path, mode: int, bits: int) -> None:
    if not mode & bits:
        return
    with suppress(OSError):
        path.chmod(mode & ~bits)
    if _mode(path) & bits:  # another user's, or of a file system that keeps no modes
        _tell_once(path, mode, mode & ~bits)
        return
    log.warning(
        "%s was open to other users of this machine (mode %o): its mode is %o now.",
        *(path, mode, mode & ~bits),
    )


@cache
def _tell_once(path: Path, mode: int, private_mode: int) -> None:
    log.warning(
        "%s is open to other users of this machine (mode %o), and that could not be changed. Have "
        "its owner chmod it to %o, or keep it where files have modes.",
        *(path, mode, private_mode),
    )
