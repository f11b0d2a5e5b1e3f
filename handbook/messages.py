"""Messages of the code, and 40 of them by a seed: for a reader who has the handbook alone.

``python -m handbook.messages`` prints them. A message is what one call says to people: a finding,
an alert's text, a cause, an answer, an error with its next step. It is joined as people see it,
and values are shown as ``{…}``. What is a part of a sentence begins or ends with ``…``.
"""

from __future__ import annotations

import ast
import hashlib
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from handbook.said import (
    VALUE,
    Function,
    House,
    Module,
    Reader,
    Scope,
    returns,
    scope_of,
    sentences,
)
from handbook.sentences import ROOT
from rehome.errors import STEP_UNCHANGED

SEED, DRAWN = 35, 40
SAYS: Mapping[str, tuple[str, ...]] = {
    "Alert": ("text", "next_step"),
    "Cause": ("text", "left", "remedy"),
    "PausedText": ("text", "next_step"),
}
"""What is made of sentences for people, and which of its fields they read, in this order."""
STEPS_APART = frozenset({"PausedText"})
"""Those whose last field stands below the words *Next step*."""
FINDING = ("subject", "detail", "message", "remedy")
WORDS = (
    "include/rehome/account/words",
    "include/rehome/execution/access/words",
    "include/rehome/execution/completion/words",
    "include/rehome/execution/control/words",
    "include/rehome/execution/dry_run/words/rate_words.py",
    "include/rehome/execution/observation/words",
    "include/rehome/alerts/alert_text.py",
    "include/rehome/domain/run/paused/paused_text.py",
    "plugins/rehome/run/words/answer_words.py",
)
"""Modules whose every text is one."""
PAIRS = ("_TEXTS", "_STEPS")
"""Two tables by the same keys: what is so, and what to do about it."""
OF_FINDINGS = "include/rehome/execution/dry_run/words"
"""Modules with such tables, whose names have a topic before that, and stand behind a subject."""
OF_ENDS = "plugins/rehome/run/words"
"""The same of why tasks end, and of the state that is left: a third table."""
CHANGES_NOTHING = frozenset({"ASKER_TEXTS", "RUN_TEXTS"})
"""Topics whose reasons leave everything as it was, where no text says otherwise."""
HEADS = ("_HEADLINES", "STEP_TEXTS", "_BY_STAND")
"""Where plans stand, steps, and which of these has which of those."""
LEAST = 8
"""Words of a message; shorter ones are parts of one."""
_FORMATTED = re.compile(r"\{[a-z]*\}")
_ENDS = (".", "!", "?", ":", VALUE)


@cache
def messages(root: Path = ROOT) -> list[str]:
    """All of them, sorted."""
    house = House.read(
        (path.relative_to(root).as_posix(), path)
        for room in ("include", "plugins/rehome")
        for path in sorted((root / room).rglob("*.py"))
    )
    found: set[str] = set()
    for name, module in house.modules.items():
        reader = Reader(house, module)
        found |= set(_of_calls(reader, module.tree))
        if name.startswith(WORDS):
            found |= set(_of_words(reader, module))
        if name.startswith(OF_FINDINGS):
            found |= set(_of_findings(reader, module))
        if name.startswith(OF_ENDS):
            found |= set(_of_ends(reader, module))
    found = {_FORMATTED.sub(VALUE, text) for text in found}
    return sorted(text for text in found if len(text.replace(VALUE, "").split()) >= LEAST)


def drawn(root: Path = ROOT, seed: int = SEED) -> list[str]:
    """Those that are read: a message that changes elsewhere changes no other's place."""

    def place(text: str) -> str:
        return hashlib.sha256(f"{seed} {text}".encode()).hexdigest()

    return sorted(sorted(messages(root), key=place)[:DRAWN])


def _of_calls(reader: Reader, tree: ast.AST, within: tuple[Function, ...] = ()) -> Iterator[str]:
    """Of calls, each with the names of the functions that it stands in."""
    for node in ast.iter_child_nodes(tree):
        around = (*within, node) if isinstance(node, Function) else within
        if isinstance(node, ast.Call):
            scope: dict[str, str | ast.expr] = {}
            for function in around:
                scope |= scope_of(function, node.lineno)
            yield _said_by(reader, node, scope)
        yield from _of_calls(reader, node, around)


def _said_by(reader: Reader, call: ast.Call, scope: Scope) -> str:
    name = str(getattr(call.func, "id", getattr(call.func, "attr", "")))
    if reader.house.is_error(name):
        return reader.error(name, call, scope)
    if name.endswith("Error") and name != "TypeError":  # one of a developer's own
        texts = (reader.text(each, scope) for each in call.args)
        return part(sentences(each for each in texts if " " in each))
    if name not in SAYS and name != "Finding":
        return ""
    given = dict(zip(reader.house.fields(name), call.args, strict=False))
    given |= {each.arg: each.value for each in call.keywords if each.arg is not None}
    fields = FINDING if name == "Finding" else SAYS[name]
    said = [reader.text(given[each], scope) if each in given else "" for each in fields]
    if name in STEPS_APART and said[-1]:
        said[-1] = f"Next step: {said[-1]}"
    if name != "Finding":
        return sentences(said)
    subject, detail, message, remedy = said
    about = f"{subject} ({detail})" if detail else subject
    return sentences((f"{about}: {message}", remedy))


def _of_words(reader: Reader, module: Module) -> Iterator[str]:
    tables = [module.values[name] for name in PAIRS if name in module.values]
    paired = {*HEADS}
    if len(tables) == len(PAIRS) and all(isinstance(each, ast.Dict) for each in tables):
        texts, steps = (_entries(each) for each in tables)
        for key, text in texts.items():
            yield sentences(_of_entry(reader, each) for each in (text, steps[key]))
        paired |= {*PAIRS, *(each.id for each in texts.values() if isinstance(each, ast.Name))}
    if HEADS[0] in module.values:
        yield from _of_standings(reader, module)
    for name, value in module.values.items():
        if name not in paired and isinstance(value, ast.Dict):
            yield from (part(_of_entry(reader, each)) for each in value.values)
    for name, function in module.functions.items():
        if name not in paired:
            yield from _returned(reader, function)


def _of_findings(reader: Reader, module: Module) -> Iterator[str]:
    """Each as a finding is shown: what it is about, and its figures, stand before it."""
    tables = _topic(module)
    if "TEXTS" not in tables:
        return
    steps, details = (
        _entries(tables[name]) if name in tables else {} for name in ("STEPS", "DETAILS")
    )
    for key, text in _entries(tables["TEXTS"]).items():
        figures = f" ({_of_entry(reader, details[key])})" if key in details else ""
        message, remedy = (_of_entry(reader, each) for each in (text, steps[key]))
        yield sentences((f"{VALUE}{figures}: {message}", remedy))
    for function in module.functions.values():
        if len(list(returns(function))) > 1:  # one of several: the reader puts none of them in
            yield from _returned(reader, function)


def _topic(module: Module) -> dict[str, ast.expr]:
    """Tables of a topic, by their names without it."""
    return {
        name.partition("_")[2]: value
        for name, value in module.values.items()
        if isinstance(value, ast.Dict) and not name.startswith("_")
    }


def _of_ends(reader: Reader, module: Module) -> Iterator[str]:
    """Each as an error is shown: what is so, what state is left, and what to do."""
    tables = _topic(module)
    if "TEXTS" not in tables:
        return
    unchanged = STEP_UNCHANGED if CHANGES_NOTHING & module.values.keys() else ""
    steps, left = (_entries(tables[name]) if name in tables else {} for name in ("STEPS", "LEFT"))
    for key, text in _entries(tables["TEXTS"]).items():
        said = _of_entry(reader, left[key]) if key in left else unchanged
        yield sentences((_of_entry(reader, text), said, _of_entry(reader, steps[key])))
    for function in module.functions.values():
        yield from _returned(reader, function)


def _of_standings(reader: Reader, module: Module) -> Iterator[str]:
    """Each with its step, where it has one step; and the steps of those that have several."""
    values = (reader.house.common.values | module.values).__getitem__
    heads, steps, by_stand = (_entries(values(name)) for name in HEADS)
    words = next(each for each in reader.house.modules.values() if HEADS[1] in each.values)
    of_steps = Reader(reader.house, words)
    of_one = {
        stand: ast.dump(each.elts[0])
        for stand, each in by_stand.items()
        if isinstance(each, ast.Tuple)
    }
    for stand, head in heads.items():
        said = [_of_entry(reader, head)]
        if stand in of_one:
            said.append(f"Next step: {_of_entry(of_steps, steps[of_one[stand]])}")
        yield sentences(said)
    for step, text in steps.items():
        if step not in of_one.values():
            yield part(_of_entry(of_steps, text))


def _entries(table: ast.expr) -> dict[str, ast.expr]:
    assert isinstance(table, ast.Dict)
    keys = [ast.dump(key) for key in table.keys if key is not None]
    return dict(zip(keys, table.values, strict=True))


def _of_entry(reader: Reader, value: ast.expr) -> str:
    """A text, or a function that makes it of what it is about."""
    if isinstance(value, ast.Lambda):
        return reader.text(value.body, {})
    if isinstance(value, ast.Name) and value.id in reader.module.functions:
        value = ast.Call(value, [], [])
    return reader.text(value, {})


def _returned(reader: Reader, function: Function) -> Iterator[str]:
    for node in ast.walk(function):
        scope = scope_of(function, getattr(node, "lineno", 0))
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
            said = dict.fromkeys(reader.text(each, scope) for each in node.value.elts)
            yield sentences(said)
        elif isinstance(node, ast.Return) and node.value is not None:
            yield part(reader.text(node.value, scope))


def part(text: str) -> str:
    """Marked where a sentence has begun before it, or goes on behind it."""
    text = text.strip()
    before = "… " if text[:1].islower() or text[:1] in ",;:" else ""
    after = "" if not text or text.endswith(_ENDS) else " …"
    return f"{before}{text}{after}"


def main() -> int:
    """Print those of a seed."""
    print("{…} is a value. … before or behind a text: a sentence that has begun, or goes on;")
    print("before *has*, *holds*, *is* and *names* stands the parameter or entry with its value.")
    seed = int(sys.argv[1]) if sys.argv[1:] else SEED
    for number, text in enumerate(drawn(seed=seed), start=1):
        print(f"{number}. {text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
