"""What Rehome is made with: an SBOM (CycloneDX) and a list of licences, from the lock.

``python -m local.bill_of_materials`` writes both into ``dist/``. The packages that are installed
here say their licences; those that the lock pins are listed, others (of development) are not.
"""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from rehome.version import REHOME_VERSION

ROOT = Path(__file__).resolve().parents[1]
DIST, LOCK = ROOT / "dist", ROOT / "requirements.lock"
MADE_BY = "cyclonedx-bom==7.2.1"
VENDORED = ROOT / "plugins/rehome/ui/static/vendor"
NOT_DECLARED = "not declared"
ROOT_COMPONENT = "root-component"
"""What the generator calls Rehome itself."""
LICENCES: Mapping[str, str] = {
    "protobuf": "BSD-3-Clause",
    "htmx-ext-sse": "0BSD",
    "htmx.org": "0BSD",
    "idiomorph": "0BSD",
    "uplot": "MIT",
}
"""Of packages that do not declare theirs where it can be read; each has its licence's text."""
LICENCE_CHOICES: Mapping[str, str] = {
    "greenback": "MIT OR Apache-2.0",
    "text-unidecode": "Artistic-1.0-Perl OR GPL-2.0-or-later",
}
"""Of packages that let one choose, and declare each licence as if all held."""
ACCEPTED = frozenset(
    {
        *("0BSD", "Apache-2.0", "Artistic-1.0-Perl", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0"),
        *("ISC", "LGPL-3.0-only", "MIT", "MIT-0", "MPL-2.0", "PSF-2.0", "Python-2.0", "Unlicense"),
        *("Zlib", "Apache Software License", "BSD License"),
        "Mozilla Public License 2.0 (MPL 2.0)",
    }
)
"""Licences that were read: a package may have them. As SPDX or, after that, as PyPI names them."""
_CLASSIFIER = "License :: OSI Approved :: "
_PIN = re.compile(r"^[A-Za-z0-9][^\s#].*==.*$", re.MULTILINE)

Component = dict[str, Any]


def pins(lock: str) -> dict[str, str]:
    """Name, as indexes compare it, → version, of each package that a lock has for this machine."""
    lines = (line.removesuffix("\\").strip() for line in _PIN.findall(lock))
    found = [Requirement(line) for line in lines]
    here = [each for each in found if each.marker is None or each.marker.evaluate()]
    return {canonicalize_name(each.name): str(each.specifier).lstrip("=") for each in here}


def shipped(components: Iterable[Component], pinned: Collection[str]) -> list[Component]:
    """Components that the lock has, in order of their names; licences added where we know them."""
    found = [each for each in components if canonicalize_name(each["name"]) in pinned]
    for each in found:
        name = canonicalize_name(each["name"])
        if not each.get("licenses") and name in LICENCES:
            each["licenses"] = [{"license": {"id": LICENCES[name]}}]
    return sorted(found, key=lambda each: canonicalize_name(each["name"]))


def vendored(package_json: str) -> Iterator[Component]:
    """Files of others that lie in Rehome's own folders, as components."""
    for name, version in json.loads(package_json)["dependencies"].items():
        yield {
            "type": "library",
            "name": name,
            "version": version,
            "bom-ref": f"{name}@{version}",
            "purl": f"pkg:npm/{name}@{version}",
            "licenses": [{"license": {"id": LICENCES[name]}}],
        }


def licence_of(component: Component) -> str:
    """Its licence as an SPDX expression, or in its own words."""
    name = canonicalize_name(component.get("name", ""))
    return LICENCE_CHOICES.get(name) or " AND ".join(_declared(component)) or NOT_DECLARED


def _declared(component: Component) -> list[str]:
    """The licences that it declares. A classifier counts where there is nothing better."""
    better: list[str] = []
    classifiers: list[str] = []
    for each in component.get("licenses", ()):
        licence = each.get("license", {})
        if found := each.get("expression") or licence.get("id"):
            better.append(found)
        elif name := licence.get("name"):
            first = name.splitlines()[0]
            words = classifiers if first.startswith("License :: ") else better
            words.append(first.removeprefix(_CLASSIFIER))
    return list(dict.fromkeys(better or classifiers))


def is_accepted(licence: str) -> bool:
    """Whether each licence that holds, or one of those to choose from, was read before."""
    return all(
        any({choice, choice.strip("()")} & ACCEPTED for choice in each.split(" OR "))
        for each in licence.split(" AND ")
    )


def _kept(entry: Mapping[str, Any], refs: Collection[str], vendored_refs: list[str]) -> list[str]:
    """What a component depends on, as far as it is listed; Rehome has the vendored files, too."""
    ours = vendored_refs if entry["ref"] == ROOT_COMPONENT else []
    return [*(ref for ref in entry.get("dependsOn", ()) if ref in refs), *ours]


def write(bom: dict[str, Any], pinned: Mapping[str, str], folder: Path) -> list[str]:
    """Write both files into a folder; returns packages of the lock that are not in the SBOM, or
    have a licence that is none of those accepted.
    """
    ours = [*vendored((VENDORED / "package.json").read_text())]
    listed = [*shipped(bom["components"], pinned), *ours]
    vendored_refs = [each["bom-ref"] for each in ours]
    refs = {each["bom-ref"] for each in listed} | {ROOT_COMPONENT}
    bom["components"] = listed
    bom["metadata"]["component"]["version"] = REHOME_VERSION
    bom["dependencies"] = [
        each | {"dependsOn": _kept(each, refs, vendored_refs)}
        for each in bom["dependencies"]
        if each["ref"] in refs
    ] + [{"ref": ref} for ref in vendored_refs]
    folder.mkdir(exist_ok=True)
    (folder / f"rehome-{REHOME_VERSION}.cdx.json").write_text(json.dumps(bom, indent=1))
    with (folder / f"rehome-{REHOME_VERSION}-licences.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["package", "version", "licence"])
        rows.writerows([each["name"], each["version"], licence_of(each)] for each in listed)
    there = {canonicalize_name(each["name"]) for each in listed}
    new = [each["name"] for each in listed if not is_accepted(licence_of(each))]
    return sorted({*pinned} - there) + new


def main() -> int:
    """Write both; 1 if a package of the lock is missing, or has a licence that was not read yet."""
    made = subprocess.run(
        [
            *("uvx", "--from", MADE_BY, "cyclonedx-py", "environment", "--output-reproducible"),
            *("--pyproject", str(ROOT / "pyproject.toml"), "-o", "-", sys.executable),
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    lacking = write(json.loads(made.stdout), pins(LOCK.read_text()), DIST)
    for name in lacking:
        print(f"{name}: not installed here, or its licence is not among those accepted")
    print(f"SBOM and licences are in {DIST.name}/.")
    return 1 if lacking else 0


if __name__ == "__main__":
    sys.exit(main())
