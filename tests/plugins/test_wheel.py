"""The wheel in an Airflow that has nothing else of Rehome: its DAGs, plugin, provider, jobs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.plugins.wheel import ROOT, UV, Installed, built, contents, installed_wheel

pytestmark = pytest.mark.slow

ASKED = """
import json, sys
from pathlib import Path
from airflow.dag_processing.dagbag import DagBag
from airflow.plugins_manager import get_import_errors, get_plugin_info
from airflow.providers_manager import ProvidersManager
import rehome.planning.planner, rehome.task_graph
from rehome.packaging import build_job_zip

bag = DagBag(sys.argv[1])
plugins = get_plugin_info()
print(json.dumps({
    "dags": sorted(bag.dag_ids),
    "errors": [*map(str, bag.import_errors.values()), *get_import_errors().values()],
    "plugins": [plugin["name"] for plugin in plugins if plugin["name"] == "rehome"],
    "provider": "rehome" in ProvidersManager().providers,
    "from": [rehome.planning.planner.__file__, rehome.task_graph.__file__],
    "zip": str(build_job_zip(Path(sys.argv[2]))),
}))
"""
JOB = "import rehome.planning.planner, spark_jobs.session; print(spark_jobs.session.__file__)"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return installed_wheel(tmp_path_factory.mktemp("installed"))


def _environment(home: Path, **more: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
        **more,
    }


def _said(python: Path | str, code: str, *arguments: object, env: dict[str, str]) -> str:
    command = [str(python), "-c", code, *map(str, arguments)]
    done = subprocess.run(
        command, env=env, cwd=env["AIRFLOW_HOME"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def test_it_brings_dags_plugin_provider_and_jobs(installed: Installed, tmp_path: Path) -> None:
    env = _environment(tmp_path)
    for words in (("settings", "import", "--migrate"), ("dags", "install", tmp_path / "dags")):
        assert installed.run(*words, env=env) == 0
    archive = tmp_path / "job.zip"
    found = json.loads(_said(installed.python, ASKED, tmp_path / "dags", archive, env=env))
    files = {path.stem for path in (ROOT / "dags").glob("*.py")} - {"clusters", "clusters_file"}
    assert set(found["dags"]) == files
    assert found["errors"] == []
    assert found["plugins"] == ["rehome"]
    assert found["provider"]
    assert all(Path(each).is_relative_to(installed.python.parents[1]) for each in found["from"])
    there = _said(sys.executable, JOB, env={**env, "PYTHONPATH": found["zip"]})
    assert there.startswith(str(archive))


def test_a_copy_beside_it_is_refused_by_a_sentence(installed: Installed, tmp_path: Path) -> None:
    env = _environment(tmp_path, AIRFLOW__CORE__PLUGINS_FOLDER=str(ROOT / "plugins"))
    asked = """
import json
from airflow.plugins_manager import ensure_plugins_loaded, get_import_errors
ensure_plugins_loaded()
print(json.dumps([*get_import_errors().values()]))
"""
    (problem,) = json.loads(_said(installed.python, asked, env=env))
    assert "Rehome is installed in" in problem
    assert "Keep one" in problem


def test_the_source_archive_has_all_that_the_wheel_is_built_from_and_no_tests(
    installed: Installed, tmp_path: Path
) -> None:
    (from_checkout,) = installed.python.parents[2].glob("dist/*.whl")
    assert contents(built(tmp_path)) == contents(from_checkout)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        folders = {Path(name).parts[1] for name in files.getnames() if len(Path(name).parts) > 2}
    assert folders == {"dags", "include", "plugins", "spark_jobs"}


def test_nothing_is_left_of_it_after_it_is_uninstalled(installed: Installed) -> None:
    """The last one here: no other finds it installed afterwards."""
    home = installed.python.parents[1]
    before = {path for path in home.rglob("*") if "rehome" in path.name}
    assert installed.command in before
    uv = ("pip", "uninstall", "-q", "--python", str(installed.python), "rehome")
    subprocess.run([str(UV), *uv], check=True)
    assert [path for path in home.rglob("*") if "rehome" in path.name] == []
