"""The bounds of one run, from what was asked and what is set."""

from __future__ import annotations

from dataclasses import fields

from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.run.run_policy import Policy
from rehome.settings import Settings

_DEFAULT_MOVES = {f.name: f.default for f in fields(ReassignmentRequest)}["max_moves_per_broker"]
_DEFAULT_IN_FLIGHT = Settings.model_fields["max_partitions_in_flight"].default


def rate_for(request: ReassignmentRequest, settings: Settings) -> int:
    """The throttle to plan with, in bytes per second, broker and direction; where there is to be
    none, what a broker can take in. Before "auto" has found one: the setting's, within the bounds
    of the request.
    """
    if request.unthrottled:
        return settings.broker_capacity_bytes_per_s
    if request.throttle_bytes_per_s is not None:
        return request.throttle_bytes_per_s
    at_least = max(settings.auto_throttle_bytes_per_s, request.throttle_min or 0)
    return at_least if request.throttle_max is None else min(at_least, request.throttle_max)


def small_bytes_for(request: ReassignmentRequest, settings: Settings) -> int:
    """Moves of no more bytes are small; 0 = none is: a number of moves at once that a person has
    chosen holds for all.
    """
    moves_chosen = request.max_moves_per_broker != _DEFAULT_MOVES
    return 0 if moves_chosen else settings.small_move_bytes


MOST_SMALL_IN_FLIGHT = 5_000
"""Of moves that take no slot, where the limit of partitions in flight is the default."""


def policy_for(request: ReassignmentRequest, settings: Settings) -> Policy:
    """What a plan of this request may do, and when it counts as stalled.

    A number of moves or of partitions at once that a person has chosen holds for small ones, too.
    """
    limit_chosen = settings.max_partitions_in_flight != _DEFAULT_IN_FLIGHT
    return Policy(
        rate_bytes_per_s=rate_for(request, settings),
        max_moves_per_broker=request.max_moves_per_broker,
        reaction_s=settings.reaction_s,
        max_partitions_in_flight=settings.max_partitions_in_flight,
        poll_interval_s=settings.poll_interval_s,
        stall_alert_s=settings.stall_alert_s,
        stall_timeout_s=settings.stall_timeout_s,
        window_end=request.window_end,
        on_window_end=request.on_window_end,
        additional=request.additional,
        throttle_efficiency=settings.throttle_efficiency,
        min_free_disk_fraction=settings.min_free_disk_fraction,
        min_rate_bytes_per_s=request.throttle_min or 0,
        caps=request.caps,
        small_bytes=small_bytes_for(request, settings),
        max_small_in_flight=None if limit_chosen else MOST_SMALL_IN_FLIGHT,
        max_new_replicas_at_once=request.max_new_replicas_at_once,
    )
