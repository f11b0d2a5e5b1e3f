"""Pictures of the page for docs/images, from the screenshots that the browser tests keep.

    python -m handbook.screenshots DIRECTORY

``make screenshots`` runs the tests and then this. A name or a number of pictures that differs from
what the handbook shows is an error: a test that keeps no screenshot any more must not go unseen.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from PIL import Image

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
LARGEST_BYTES = 150_000
COLOURS = 128
WIDTH = 1120
SHOWN = {
    "cluster-in-Airflow": "cluster",
    "plan-a-move-in-Airflow": "plan-a-move",
    "planned-in-Airflow": "planned",
    "approval-in-Airflow": "approval",
    "running-in-Airflow": "running",
    "done-in-Airflow": "done",
    "choices-1280": "choices",
}
"""Screenshot of a test → picture of the handbook."""


def smaller(picture: Image.Image) -> Image.Image:
    """The same with the width and the colours that a page needs."""
    scaled = picture.convert("RGB")
    if scaled.width > WIDTH:
        height = round(scaled.height * WIDTH / scaled.width)
        scaled = scaled.resize((WIDTH, height), Image.Resampling.LANCZOS)
    return scaled.quantize(COLOURS, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)


def keep(source: Path, images: Path = IMAGES) -> list[str]:
    """Write every picture of the handbook; returns what is wrong, nothing where all is well."""
    problems = []
    for shot, name in SHOWN.items():
        taken = source / f"{shot}.png"
        if not taken.exists():
            problems.append(f"No test kept {taken.name}.")
            continue
        target = images / f"{name}.png"
        with Image.open(taken) as picture:
            smaller(picture).save(target, optimize=True)
        if target.stat().st_size > LARGEST_BYTES:
            problems.append(f"{target.name} has more than {LARGEST_BYTES} bytes.")
    return problems


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    problems = keep(parser.parse_args().source)
    print(*problems, sep="\n", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
