"""A run that has no plan, in words."""

from __future__ import annotations

from rehome.account.run_account import Changed, RunAccount


def changed_text(account: RunAccount, why_unknown: str = "") -> str:
    """What it has changed, in a sentence; "" = its DAG's own report says that.

    :param why_unknown: where it is not known; "" = the ledger lacks its plan.
    """
    match account.changed:
        case Changed.NOTHING:
            return "No plan was made; nothing was changed."
        case Changed.WITHOUT_PLAN:
            return ""
        case Changed.NOT_KNOWN:
            why = why_unknown or "the warehouse holds a plan of it, and this ledger does not."
            return f"What the run has changed is not known here: {why} See the logs of its tasks."
