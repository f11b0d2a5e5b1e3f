"""The handbook's pod template: Airflow's container by its name, and settings that there are."""

from __future__ import annotations

import re

import yaml

from handbook.sources import ROOT
from rehome.settings import Settings, known_settings

_PAGE = ROOT / "docs" / "howto" / "several-machines.md"


def test_the_pod_template_has_airflows_container_and_known_settings() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", _PAGE.read_text(), re.DOTALL)
    pod = yaml.safe_load(text)
    assert (pod["kind"], pod["spec"]["restartPolicy"]) == ("Pod", "Never")
    (container,) = pod["spec"]["containers"]
    assert container["name"] == "base", "Airflow looks for it by this name"
    given = {each["name"]: each["value"] for each in container["env"]}
    known = {f"REHOME_{name.upper()}" for name in known_settings()}
    assert given.keys() <= known
    own = {name.removeprefix("REHOME_").lower(): value for name, value in given.items()}
    assert Settings.load(own).warehouse.startswith("s3://")
    mounted = {each["name"] for each in container["volumeMounts"]}
    assert mounted == {each["name"] for each in pod["spec"]["volumes"]}
