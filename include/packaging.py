"""include/ as a zip, so that spark-submit can ship it: `--py-files include.zip`."""

from __future__ import annotations

import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent


def build_include_zip(target: Path) -> Path:
    """Write include/'s sources into ``target`` and return it. Same sources, same bytes."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w") as archive:
        for source in sorted(ROOT.rglob("*.py")):
            name = source.relative_to(ROOT.parent).as_posix()
            archive.writestr(zipfile.ZipInfo(name), source.read_bytes(), zipfile.ZIP_DEFLATED)
    return target
