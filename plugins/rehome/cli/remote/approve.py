"""Answer the question of a run that waits for a person."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from rehome.cli.output import CommandError, ExitCode, clean, console, say, say_json
from rehome.cli.remote.options import add_airflow, add_json, add_yes, confirm, open_airflow
from rehome.cli.remote.show import add_plan, path_of
from rehome.cli.remote.watch import follow
from rehome.cli.verbs import Verb

_APPROVE = """Approve a plan that waits for a person; or reject it, or send it back.

It answers Airflow's own question, in your name: who may answer there, may answer here. The question
is shown first. An approval names the code of what was shown: it holds for exactly this plan, rate
and window. Without a terminal, read the question by --show, and give its code by --code."""


def verbs() -> tuple[Verb, ...]:
    """The one that answers."""
    return (Verb(("approve",), _APPROVE, _approve_arguments, _approve),)


def _approve_arguments(parser: argparse.ArgumentParser) -> None:
    add_plan(parser)
    answer = parser.add_mutually_exclusive_group()
    answer.add_argument("--show", action="store_true", help="show the question, and answer nothing")
    answer.add_argument("--code", help="approve what has this code, without being asked")
    answer.add_argument("--reject", action="store_true", help="say no: the plan is cancelled")
    answer.add_argument(
        "--send-back", metavar="RATE", help="have it tried out, and asked, with another throttle"
    )
    parser.add_argument("--watch", action="store_true", help="then follow the plan")
    add_yes(parser)
    add_airflow(parser)
    add_json(parser)


def _approve(chosen: argparse.Namespace) -> int:
    with open_airflow(chosen) as client:
        plan = client.page(path_of(chosen.plan))
        if not plan["asking"]:
            raise CommandError(
                ExitCode.REFUSED,
                f"Plan {chosen.plan} does not wait for an answer: it is {plan['state']}.",
                "A run that asks says so in `rehome status`.",
            )
        where = question_path(plan)
        question = client.api("GET", where)
        if chosen.show and chosen.json:
            say_json(question)
            return ExitCode.DONE
        if not chosen.json and not chosen.code:
            _show(question)
        if chosen.show:
            say(f"It takes: {', '.join(question['options'])}")
            return ExitCode.DONE
        option = option_of(chosen, question["options"])
        if chosen.code is None and not confirm(_asked_for(chosen), f"{option}?"):
            say("Nothing was answered.")
            return ExitCode.REFUSED
        given = {"throttle": chosen.send_back} if chosen.send_back else {}
        answered = client.api("PATCH", where, {"chosen_options": [option], "params_input": given})
        if not chosen.json:
            say(f"Answered: {option}.")
        elif not chosen.watch:
            say_json(answered)
        return follow(client, chosen.plan, as_json=chosen.json) if chosen.watch else ExitCode.DONE


def question_path(plan: Mapping[str, Any]) -> str:
    """Where Airflow has the question of a plan's run."""
    names = (plan["dag_id"], plan["run_id"], plan["asking"])
    dag, run, task = (quote(str(name), safe="") for name in names)
    return f"/dags/{dag}/dagRuns/{run}/taskInstances/{task}/-1/hitlDetails"


def option_of(chosen: argparse.Namespace, options: Sequence[str]) -> str:
    """The option that is chosen.

    :raises CommandError: the question does not have it: what would run now has another code.
    """
    first = "Reject" if chosen.reject else "Send back" if chosen.send_back else "Approve"
    matches = [option for option in options if option.startswith(first)]
    if chosen.code is not None:
        matches = [option for option in matches if option.split()[-1] == chosen.code]
    if matches:
        return matches[0]
    offered = ", ".join(options)
    if chosen.code is not None:
        raise CommandError(
            ExitCode.REFUSED,
            f"What would be approved now has another code than {chosen.code}. Nothing was "
            f"answered; there is: {offered}.",
            "Read it again by --show.",
        )
    raise CommandError(
        ExitCode.REFUSED, f"{first} is none of the answers: {offered}. Nothing was answered."
    )


def _asked_for(chosen: argparse.Namespace) -> argparse.Namespace:
    """To approve what nobody has read is no approval: only an answer that stops needs no yes."""
    return argparse.Namespace(yes=chosen.yes and bool(chosen.reject or chosen.send_back))


def _show(question: Mapping[str, Any]) -> None:
    from rich.markdown import Markdown

    body = clean(question.get("body") or "")
    screen = console()
    if screen.is_terminal:
        screen.print(Markdown(body))
    else:
        say(body)
