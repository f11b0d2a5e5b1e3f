"""What a command of ``rehome`` is, and how a parser is made of all of them.

A module has its commands by ``verbs()``; :data:`rehome.cli.main.MODULES` names the modules. What a
command takes is asked only of the one that is called: the others cost nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Verb:
    """One command.

    :param words: one word, ``("status",)``, or a group and a word, ``("audit", "export")``.
    :param about: what it does, its first line in short.
    :param add_arguments: what it takes.
    :param run: returns the exit code.
    """

    words: tuple[str, ...]
    about: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]

    @property
    def in_short(self) -> str:
        """The first line."""
        return self.about.partition("\n")[0]


class VerbParser(argparse.ArgumentParser):
    """A parser that asks its command what it takes only when it is called."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.verb: Verb | None = None
        self._filled = False

    def fill(self) -> None:
        """Ask the command what it takes. Idempotent."""
        if self.verb is not None and not self._filled:
            self._filled = True
            self.verb.add_arguments(self)
            self.set_defaults(run=self.verb.run)

    def arguments(self) -> Iterator[tuple[str, str]]:
        """What the command takes, as people write it, and what each is; for documents."""
        self.fill()
        for each in self._actions:
            if isinstance(each, argparse._HelpAction):
                continue
            words = [*each.option_strings] or [str(each.metavar or each.dest)]
            if each.option_strings and each.nargs != 0 and each.metavar:
                words[-1] += f" {each.metavar}"
            yield ", ".join(words), (each.help or "").replace("%%", "%")

    def parse_known_args(self, *args: Any, **kwargs: Any) -> Any:
        """As of any parser."""
        self.fill()
        return super().parse_known_args(*args, **kwargs)


def register(parser: VerbParser, verbs: Iterable[Verb]) -> dict[tuple[str, ...], VerbParser]:
    """Give a parser its commands; returns the parser of each.

    Commands of one group may come from several modules.
    """
    verbs = list(verbs)
    top = parser.add_subparsers(required=True, metavar="COMMAND")
    groups: dict[str, Any] = {}
    made: dict[tuple[str, ...], VerbParser] = {}
    for verb in verbs:
        place = top if len(verb.words) == 1 else _group(top, groups, verb.words[0], verbs)
        made[verb.words] = place.add_parser(
            verb.words[-1],
            help=verb.in_short,
            description=verb.about,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        made[verb.words].verb = verb
    return made


def _group(top: Any, groups: dict[str, Any], name: str, verbs: Iterable[Verb]) -> Any:
    if name not in groups:
        of_it = [verb for verb in verbs if verb.words[0] == name]
        rest = "".join(f" {verb.words[1]}: {verb.in_short}" for verb in of_it)
        made = top.add_parser(name, help=rest.strip())
        groups[name] = made.add_subparsers(required=True, metavar="VERB")
    return groups[name]


def all_verbs(modules: Sequence[Any]) -> list[Verb]:
    """The commands of modules, in their order."""
    return [verb for module in modules for verb in module.verbs()]
