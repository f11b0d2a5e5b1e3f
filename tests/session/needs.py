"""What a test needs of the machine beside Python, by the fixtures that bring it."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


class Need(enum.StrEnum):
    """The marker of a test that needs it."""

    BROKERS = "brokers"
    SPARK = "spark"
    BROWSER = "browser"
    AIRFLOW = "airflow"
    POSTGRESQL = "postgresql"


def needs(*what: Need) -> Callable[[Function], Function]:
    """A fixture brings it; below ``@pytest.fixture``."""

    def marked(function: Function) -> Function:
        function.needs = what  # type: ignore[attr-defined]
        return function

    return marked
