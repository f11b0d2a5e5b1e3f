"""Sentences in the code, checked: plurals, lengths, beginnings, and words that the house does not
use.

``python -m handbook.sentences`` is part of ``make lint``. It reads the strings of all code that is
installed, without docstrings, and the templates of pages and reports.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("dags", "include", "plugins", "spark_jobs")
APART = "include/rehome/ledger/migrations/"
"""What earlier versions have said stays as it was; nobody reads it."""
TYPED = "include/rehome/execution/control/"
"""Answers and refusals arise here as types: no string of a module has two words."""
OF_TIMES = (
    "include/rehome/domain/text.py",
    "include/rehome/reporting/number_text.py",
    "plugins/rehome/cli/output.py",
)
"""Have the forms of times: of sentences, of a report's tables, and of a terminal."""
APART_WORDS = f"{TYPED}words/"
"""Where their words are: each stands alone, and begins with what it is about."""
CLEARED = (
    "include/rehome/execution/access/cluster_policy.py",
    "include/rehome/execution/access/connection_policy.py",
    "include/rehome/execution/access/policy_refusals.py",
    "include/rehome/execution/dry_run/",
    "include/rehome/execution/observation/drift.py",
    "include/rehome/execution/observation/drifted.py",
    "include/rehome/execution/observation/move_status.py",
    "plugins/rehome/operators/",
    "plugins/rehome/run/",
    "plugins/rehome/sensors/",
)
"""What ends, refuses or is found arises here as types: only log lines have sentences."""
CLEARED_BUT = (
    "include/rehome/execution/dry_run/controller_rules.py",
    "include/rehome/execution/dry_run/result.py",
    "include/rehome/execution/dry_run/words/",
    "plugins/rehome/run/asking/approval_text.py",
    "plugins/rehome/run/words/",
)
"""Modules of words, and of what the controller would answer."""
MOST_IN_LOGIC = 4
"""Words of a string that is no sentence: a name, or a part of a value."""
_LOGS = re.compile(r"(\w+\.)*_?(log|logger)\.\w+|AirflowSkipException")
"""Calls that write to a log; the reason of a skip is in the task's log alone."""
MOST_WORDS = 40
"""Of a sentence; its values count as one word each."""
_NOUNS = (
    "(?:throttle |replica )?(?:moves|partitions|replicas|brokers|settings|plans|topics|items|"
    "leaders|rows|errors|reassignments|configurations|clusters|throttles|alerts|files)"
)
_PLURAL = re.compile(rf"^ ({_NOUNS})\b")
_FILLED = re.compile(rf"(?P<value>\{{\{{?[^{{}}]*\}}\}}?|%d) (?P<noun>{_NOUNS})\b")
_COUNTS = re.compile(r"\bcount(_text)?\(|\|\s*count")
_NO_NUMBER = ("of ", "all ", "plan ")
"""Before a value: ``3 of 4 partitions`` names a whole, hardly ever one; and a plan moves."""
_LIST = ROOT / "docs" / "glossary.md"
_HEADING = "## Words that are not used"


def unused_words() -> tuple[str, ...]:
    """The words of the glossary that messages do not have."""
    rows = re.findall(r"^\| (.+?) \| .+ \|$", _LIST.read_text().partition(_HEADING)[2], re.M)
    return tuple(word for row in rows[1:] for word in row.split(", "))


_BANNED = re.compile(rf"\b({'|'.join(unused_words())})\b", re.I)
_OWED = re.compile(r"\bowe[sd]\b")
"""Ledgers, metrics and scripts know pending cleanup by these words."""
_NO_SUBJECT = re.compile(r"(It|Its|They|Their|Them)\b")
"""At the beginning of an error or an answer: nothing before it says what is meant."""
_END = re.compile(r"(?<=[.!?:;])\s+|\n")


class Fault(NamedTuple):
    """What is wrong with a sentence, and where it stands."""

    line: int
    what: str


def faults(source: str) -> Iterator[Fault]:
    """Of all strings of a module but its docstrings."""
    tree = ast.parse(source)
    stored = _stored(tree)
    for node in _said(tree):
        if isinstance(node, ast.Call):
            yield from _of_beginning(node)
        elif isinstance(node, ast.JoinedStr):
            yield from _of_values(node)
            yield from _of_text(_with_words(node), node.lineno)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = _OWED.sub("", node.value) if id(node) in stored else node.value
            yield from _of_templates(text, node.lineno)
            yield from _of_text(text, node.lineno)


def sentences_of(source: str) -> Iterator[Fault]:
    """Strings of more than one word, of a module whose words are to be elsewhere."""
    for node in _said(ast.parse(source)):
        text = _text_of(node)
        if " " in text.strip():
            yield Fault(node.lineno, f"words where a type is to be: {text[:60]}")


def sentences_in_logic(source: str) -> Iterator[Fault]:
    """Strings that are sentences, but for those of log lines."""
    tree = ast.parse(source)
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    logs = (call for call in calls if _LOGS.fullmatch(ast.unparse(call.func)))
    logged = {id(each) for call in logs for each in ast.walk(call)}
    for node in _said(tree):
        text = _text_of(node)
        if len(text.split()) > MOST_IN_LOGIC and id(node) not in logged:
            yield Fault(node.lineno, f"a sentence where a type is to be: {text[:60]}")


def times_in_words(source: str) -> Iterator[Fault]:
    """Times that are formatted in the middle of a text."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant | ast.JoinedStr) and "%H:%M" in _text_of(node):
            yield Fault(node.lineno, f"a format of times: {_text_of(node)}: use domain.text")


def _name_of(call: ast.Call) -> str:
    return str(getattr(call.func, "id", getattr(call.func, "attr", "")))


def without_subject(source: str) -> Iterator[Fault]:
    """Strings that stand alone, and begin with a word that says nothing of what is meant."""
    for node in _said(ast.parse(source)):
        found = _NO_SUBJECT.match(_text_of(node))
        if found:
            yield _no_subject(node.lineno, found[0])


def _said(tree: ast.AST) -> Iterator[ast.expr]:
    """Calls and strings; no docstring, and no string that is a part of another."""
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    inside = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node)
        if part is not node and isinstance(part, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call | ast.JoinedStr | ast.Constant) and not (
            id(node) in documented or id(node) in inside
        ):
            yield node


def _stored(tree: ast.AST) -> set[int]:
    """Values of enums, and keys of answers."""
    nodes = list(ast.walk(tree))
    enums = (each for each in nodes if isinstance(each, ast.ClassDef) and _is_enum(each))
    members = [each.value for enum in enums for each in enum.body if isinstance(each, ast.Assign)]
    firsts = [each.elts[0] for each in members if isinstance(each, ast.Tuple) and each.elts]
    keys = [key for each in nodes if isinstance(each, ast.Dict) for key in each.keys]
    return {id(each) for each in (*members, *firsts, *keys) if isinstance(each, ast.Constant)}


def _is_enum(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base).endswith("Enum") for base in node.bases)


def _text_of(node: ast.expr) -> str:
    """Of a string; "" = it is none."""
    if isinstance(node, ast.JoinedStr):
        return _with_words(node)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def template_faults(text: str) -> Iterator[Fault]:
    """Of a template of Jinja."""
    for number, line in enumerate(text.splitlines(), start=1):
        yield from _of_templates(line, number)
        yield from _of_banned(line, number)


def _of_templates(text: str, line: int) -> Iterator[Fault]:
    """The same of texts that are filled in: by ``format``, or by Jinja."""
    for found in _FILLED.finditer(text):
        if not text[: found.start()].endswith(_NO_NUMBER) and not _COUNTS.search(found["value"]):
            yield Fault(line, f"plural of one: {found['value']} {found['noun']}: use count_text")


def _of_values(node: ast.JoinedStr) -> Iterator[Fault]:
    """``{count} moves`` says *1 moves* of one."""
    before = ""
    for value, after in zip(node.values, node.values[1:], strict=False):
        if isinstance(value, ast.Constant):
            before = str(value.value)
            continue
        number = not before.endswith(_NO_NUMBER) and not _counted(value)
        if number and isinstance(after, ast.Constant):
            found = _PLURAL.match(str(after.value))
            if found:
                yield Fault(after.lineno, f"plural of one: {{…}} {found[1]}: use count_text")
        before = ""


def _counted(value: ast.expr) -> bool:
    """Whether a value has its noun with it."""
    inner = value.value if isinstance(value, ast.FormattedValue) else value
    return isinstance(inner, ast.Call) and getattr(inner.func, "id", "") == "count_text"


def _of_beginning(call: ast.Call) -> Iterator[Fault]:
    """An error stands alone: it begins with what it is about."""
    if not _name_of(call).endswith("Error"):
        return
    texts = (each.values[0] if isinstance(each, ast.JoinedStr) else each for each in call.args)
    first = next((each for each in texts if isinstance(each, ast.Constant)), None)
    found = _NO_SUBJECT.match(str(first.value)) if first is not None else None
    if found:
        yield _no_subject(call.lineno, found[0])


def _no_subject(line: int, word: str) -> Fault:
    return Fault(line, f"a message begins with {word}: name what it is about")


def _of_banned(text: str, line: int) -> Iterator[Fault]:
    for word in _BANNED.findall(text):
        yield Fault(line, f"a word of no use here: {word}")


def _of_text(text: str, line: int) -> Iterator[Fault]:
    yield from _of_banned(text, line)
    for sentence in _END.split(text):
        words = len(sentence.split())
        if words > MOST_WORDS:
            yield Fault(line, f"a sentence of {words} words: {sentence[:60]}…")


def _with_words(node: ast.JoinedStr) -> str:
    return "".join(str(v.value) if isinstance(v, ast.Constant) else "x" for v in node.values)


def found_in(root: Path) -> Iterator[str]:
    """Every fault, as compilers name them."""
    for room in ROOMS:
        for path in sorted((root / room).rglob("*")):
            name = str(path.relative_to(root))
            for find in _finders(name, path.suffix):
                for fault in find(path.read_text()):
                    yield f"{name}:{fault.line}: {fault.what}"


def _finders(name: str, suffix: str) -> Iterator[Callable[[str], Iterator[Fault]]]:
    if suffix not in _READ or name.startswith(APART):
        return
    yield _READ[suffix]
    if suffix == ".py" and name not in OF_TIMES:
        yield times_in_words
    if name.startswith(CLEARED) and not name.startswith(CLEARED_BUT):
        yield sentences_in_logic
    if name.startswith(APART_WORDS):
        yield without_subject
    elif name.startswith(TYPED):
        yield sentences_of


_READ = {".py": faults, ".html": template_faults, ".j2": template_faults}


def main() -> int:
    """Print all faults; 1 = there are some."""
    lines = list(found_in(ROOT))
    print("\n".join(lines) or "Every sentence is short and counts well.")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
