"""Copy local folders to the warehouse (an fsspec URI).

Great Expectations writes to local disks only.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rehome.directory import Directory


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file of a local folder, by its path below it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def put(files: Mapping[str, bytes], uri: str) -> None:
    """Write files below a URI in order: a reader that finds the last one finds all."""
    place = Directory(uri)
    fs, root = place.fs, place.path
    for path, content in files.items():
        target = f"{root}/{path}"
        fs.makedirs(target.rpartition("/")[0], exist_ok=True)
        fs.pipe_file(target, content)


def keep_newest(uri: str, pattern: str, most: int) -> None:
    """Remove folders below a URI, except those with the ``most`` newest names.

    :param pattern: of the folders; folders of one name are kept or removed together. The newest
        names are those with the greatest name among their subfolders.
    """
    place = Directory(uri)
    fs, root = place.fs, place.path
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
