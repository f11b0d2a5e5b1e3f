"""The command ``rehome``."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rehome.cli.main import MODULES, main
from rehome.cli.verbs import all_verbs
from rehome.version import REHOME_VERSION
from tests.plugins.wheel import ROOT


@pytest.mark.slow
def test_a_checkout_has_the_command_too() -> None:
    asked = [sys.executable, str(ROOT / "bin" / "rehome"), "--version"]
    done = subprocess.run(asked, capture_output=True, text=True, check=True, env={})
    assert done.stdout == f"rehome {REHOME_VERSION}\n"


@pytest.mark.parametrize("words", [verb.words for verb in all_verbs(MODULES)], ids=" ".join)
def test_each_command_explains_itself(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*words, "--help"])
    assert ended.value.code == 0
    assert f"rehome {' '.join(words)}" in capsys.readouterr().out
