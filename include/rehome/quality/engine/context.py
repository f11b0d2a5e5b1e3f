"""A gate's objects in Great Expectations: data source, suites, validations and checkpoints.

Great Expectations is imported inside the functions: it takes seconds.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rehome.quality.engine.rules import Expectation, Rule

if TYPE_CHECKING:
    from great_expectations.checkpoint import Checkpoint
    from great_expectations.core import ExpectationSuite
    from great_expectations.core.batch_definition import BatchDefinition
    from great_expectations.data_context import AbstractDataContext

# Switches off Great Expectations' usage statistics.
os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")

_SOURCE = "rehome"
"""Name of the data source: the gates pass tables as data frames."""

WHOLE = "whole table"


def prepare() -> None:
    """Import Great Expectations, which takes seconds; less without garbage collection, and imports
    leave hardly any garbage.
    """
    looked = gc.isenabled()
    gc.disable()
    try:
        import great_expectations  # noqa: F401
    finally:
        if looked:
            gc.enable()


def quiet(context: AbstractDataContext) -> AbstractDataContext:
    """The context without progress bars in the log, and with the data source."""
    context.variables.progress_bars = {"globally": False}
    context.data_sources.add_or_update_spark(_SOURCE, persist=False)
    return context


def suite_of(name: str, rules: Sequence[Rule]) -> ExpectationSuite:
    """A suite with the expectations of these rules, in their order."""
    import great_expectations as gx

    pairs = ((rule, item) for rule in rules for item in rule.expectations)
    # Added one by one, each would be compared with all before it.
    return gx.ExpectationSuite(
        name=name,
        expectations=[
            expectation_of(rule, item, number) for number, (rule, item) in enumerate(pairs)
        ],
    )


def expectation_of(rule: Rule, item: Expectation, number: int) -> Any:
    """One expectation; its notes name the rule and the remedy.

    :param number: its index in the suite: Great Expectations returns results in another order.
    """
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

    configuration = ExpectationConfiguration(
        type=item.type,
        kwargs=item.arguments(),
        meta={"rule": rule.name, "remedy": rule.remedy, "number": number},
        notes=f"{rule.name}. If not: {rule.remedy}",
    )
    return configuration.to_domain_obj()


def whole_table(context: AbstractDataContext, table: str) -> BatchDefinition:
    """The batch definition of a table, which is passed as a data frame; added where it is not
    there.
    """
    source = context.data_sources.get(_SOURCE)
    if table in {asset.name for asset in source.assets}:
        return source.get_asset(table).get_batch_definition(WHOLE)
    return source.add_dataframe_asset(table).add_batch_definition_whole_dataframe(WHOLE)


def checkpoint_of(context: AbstractDataContext, gate: str, suite: ExpectationSuite) -> Checkpoint:
    """The checkpoint of a suite ``gate.table``, added to the context with all that it needs.
    Objects of the same name are replaced.
    """
    import great_expectations as gx

    data = whole_table(context, suite.name.removeprefix(f"{gate}."))
    stored = context.suites.add_or_update(suite)
    validation = context.validation_definitions.add_or_update(
        gx.ValidationDefinition(name=suite.name, data=data, suite=stored)
    )
    return context.checkpoints.add_or_update(
        gx.Checkpoint(
            name=suite.name, validation_definitions=[validation], result_format="BOOLEAN_ONLY"
        )
    )
