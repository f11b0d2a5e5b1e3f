"""The SBOM has what the lock has, and nothing of development."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from local.bill_of_materials import LOCK, NOT_DECLARED, is_accepted, licence_of, pins, write

LOCKED = """\
pyyaml==6.0.3 \\
    --hash=sha256:aa
pyyaml-ft==8.0.0 ; python_full_version < '2' \\
    --hash=sha256:bb
protobuf==6.1 ; python_version >= '3' \\
    --hash=sha256:cc
grpcio[x]==1.2
"""


def component(name: str, version: str, *licences: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"name": name, "version": version, "bom-ref": f"{name}=={version}"}
    return made | ({"licenses": list(licences)} if licences else {})


def bom() -> dict[str, Any]:
    mit = {"license": {"id": "MIT"}}
    return {
        "components": [
            component("PyYAML", "6.0.3", mit),
            component("pytest", "9.2.0", mit),
            component("protobuf", "6.1"),
        ],
        "dependencies": [
            {"ref": "root-component", "dependsOn": ["PyYAML==6.0.3", "pytest==9.2.0"]},
            {"ref": "pytest==9.2.0", "dependsOn": []},
        ],
        "metadata": {"component": {"name": "rehome"}},
    }


def test_packages_of_other_machines_are_not_in_it() -> None:
    assert pins(LOCKED) == {"pyyaml": "6.0.3", "protobuf": "6.1", "grpcio": "1.2"}
    assert len(pins(LOCK.read_text())) > 100


def test_it_lists_what_is_shipped_and_names_what_is_lacking(tmp_path: Path) -> None:
    assert write(bom(), pins(LOCKED), tmp_path) == ["grpcio"]
    (file,) = tmp_path.glob("*.cdx.json")
    made = json.loads(file.read_text())
    names = [each["name"] for each in made["components"]]
    assert names[:2] == ["protobuf", "PyYAML"]
    assert {"htmx.org", "uplot"} < set(names)
    assert "pytest" not in names
    (ours, *leaves) = made["dependencies"]
    files = [each["bom-ref"] for each in made["components"][2:]]
    assert ours == {"ref": "root-component", "dependsOn": ["PyYAML==6.0.3", *files]}
    assert leaves == [{"ref": each} for each in files]
    (table,) = tmp_path.glob("*-licences.csv")
    rows = list(csv.reader(table.open()))
    assert rows[1:3] == [["protobuf", "6.1", "BSD-3-Clause"], ["PyYAML", "6.0.3", "MIT"]]


def test_a_licence_is_an_id_an_expression_or_its_own_words() -> None:
    classifier = {"license": {"name": "License :: OSI Approved :: BSD License"}}
    for given, said in (
        ([{"license": {"id": "MIT"}}, {"license": {"id": "MIT"}}], "MIT"),
        ([{"expression": "MIT OR Apache-2.0"}], "MIT OR Apache-2.0"),
        ([{"license": {"name": "Ours\nmore of it"}}], "Ours"),
        ([{"license": {"id": "BSD-3-Clause"}}, classifier], "BSD-3-Clause"),
        ([classifier], "BSD License"),
        ([{"license": {"id": "MIT"}}, {"license": {"name": "Ours"}}], "MIT AND Ours"),
        ([], NOT_DECLARED),
    ):
        assert licence_of({"licenses": given}) == said


def test_a_choice_that_a_package_leaves_is_one() -> None:
    declared = ({"license": {"id": "GPL-2.0-or-later"}}, {"license": {"name": "Artistic License"}})
    said = licence_of(component("text_unidecode", "1.3", *declared))
    assert said == "Artistic-1.0-Perl OR GPL-2.0-or-later"
    assert is_accepted(said)


@pytest.mark.parametrize(
    ("licence", "accepted"),
    [
        ("MIT", True),
        ("MPL-2.0 AND (MIT OR GPL-3.0-only)", True),
        ("Mozilla Public License 2.0 (MPL 2.0)", True),
        ("MIT AND GPL-3.0-only", False),
        ("GPL-3.0-only", False),
        (NOT_DECLARED, False),
    ],
)
def test_a_licence_that_was_not_read_yet_is_not_accepted(licence: str, accepted: bool) -> None:
    assert is_accepted(licence) is accepted


def test_a_package_with_another_licence_is_named(tmp_path: Path) -> None:
    made = bom()
    made["components"][0] = component("PyYAML", "6.0.3", {"license": {"id": "GPL-3.0-only"}})
    assert write(made, pins(LOCKED), tmp_path) == ["grpcio", "PyYAML"]
