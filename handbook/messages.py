"""Messages of the code, and 40 of them by a seed: for a reader who has the handbook alone.

``python -m handbook.messages`` prints them. A message is what one call says to people: a finding,
an alert's text, a cause, an answer, an error with its next step. Values are shown as ``{…}``.
"""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

from handbook.sentences import ROOT

SEED, DRAWN = 35, 40
SAYS = frozenset(
    {"Finding", "Alert", "Controlled", "Cause", "Hurt", "StatusSummary", "Check", "PausedText"}
)
"""What is made of sentences for people; errors besides, by their names."""
WORDS = (
    "include/rehome/account/words",
    "include/rehome/alerts/alert_text.py",
    "include/rehome/watching/paused_text.py",
)
"""Modules whose every text is one."""
LEAST = 8
"""Words of a message; shorter ones are parts of one."""


def messages(root: Path = ROOT) -> list[str]:
    """All of them, sorted."""
    found: set[str] = set()
    for room in ("include", "plugins/rehome"):
        for path in sorted((root / room).rglob("*.py")):
            name = path.relative_to(root).as_posix()
            tree = ast.parse(path.read_text())
            found |= set(_of_words(tree) if name.startswith(WORDS) else _of_calls(tree))
    return sorted(text for text in found if len(text.split()) >= LEAST)


def drawn(root: Path = ROOT, seed: int = SEED) -> list[str]:
    """Those that are read: a message that changes elsewhere changes no other's place."""

    def place(text: str) -> str:
        return hashlib.sha256(f"{seed} {text}".encode()).hexdigest()

    return sorted(sorted(messages(root), key=place)[:DRAWN])


def _of_calls(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if name in SAYS or name.endswith("Error"):
                given = [*node.args, *(each.value for each in node.keywords)]
                yield " ".join(filter(None, map(_text, given)))


def _of_words(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Return | ast.Assign | ast.AnnAssign) and node.value is not None:
            values = [node.value]
            if isinstance(node.value, ast.Dict):
                values = [each for each in node.value.values if each is not None]
            for value in values:
                parts = value.elts if isinstance(value, ast.Tuple) else [value]
                yield " ".join(filter(None, map(_text, parts)))


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) and " " in node.value else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(each.value) if isinstance(each, ast.Constant) else "{…}" for each in node.values
        )
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left) + _text(node.right)
    return ""


def main() -> int:
    """Print them."""
    for number, text in enumerate(drawn(), start=1):
        print(f"{number}. {text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
