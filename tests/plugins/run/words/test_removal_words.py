"""What is removed of old data, as the log says it."""

from __future__ import annotations

from rehome.old_data import Removed
from rehome.run.words.removal_words import PLANS_NAMED, removed_lines


def test_plans_are_named_up_to_a_number_and_the_rest_is_counted() -> None:
    plans = tuple(f"p{number}" for number in range(PLANS_NAMED + 2))
    removed = Removed(plans, ("f1",), {"events": 7}, more=True)
    first, *named, more, folders, rows, then = removed_lines(removed, 30, shown_only=False)
    assert first == (
        "Plans that ended more than 30 days ago, or were made before and never begun: "
        f"{len(plans)} removed."
    )
    assert named == [f"  {plan}" for plan in plans[:PLANS_NAMED]]
    assert more == "  and 2 more"
    assert folders == "Folders of runs that made no plan: 1 removed."
    assert rows == "Rows of events: 7 removed."
    assert then == "There are more: the next run resumes them."
    assert list(removed_lines(Removed(), 30, shown_only=True)) == [
        first.replace(f"{len(plans)} removed", "0 would be removed")
    ]
