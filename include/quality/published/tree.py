"""Local folders and those of the warehouse, which is an fsspec URI.

Great Expectations writes to local disks only: what it has made there is brought to the warehouse.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import fsspec


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file of a local folder, by its path below it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def put(files: Mapping[str, bytes], uri: str) -> None:
    """Write files below a URI, one after the other: who finds the last one finds all."""
    fs, root = fsspec.core.url_to_fs(uri)
    for path, content in files.items():
        target = f"{root}/{path}"
        fs.makedirs(target.rpartition("/")[0], exist_ok=True)
        fs.pipe_file(target, content)


def keep_newest(uri: str, pattern: str, most: int) -> None:
    """Remove folders below a URI, but those of so many names.

    :param pattern: of the folders; two of one name are kept, or removed, together. The newest are
        those that hold a folder whose name is greatest.
    """
    fs, root = fsspec.core.url_to_fs(uri)
    newest: dict[str, str] = {}
    folders: dict[str, set[str]] = {}
    for path in fs.glob(f"{root}/{pattern}/*"):
        folder, _, inner = str(path).rstrip("/").rpartition("/")
        name = folder.rpartition("/")[2]
        newest[name] = max(newest.get(name, ""), inner)
        folders.setdefault(name, set()).add(folder)
    for name in sorted(newest, key=newest.__getitem__, reverse=True)[most:]:
        for folder in folders[name]:
            fs.rm(folder, recursive=True)
