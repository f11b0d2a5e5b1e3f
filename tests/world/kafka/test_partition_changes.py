"""Reassignments and elections of one partition, by the controller's rules."""

from __future__ import annotations

from dataclasses import replace

import pytest

from world.kafka.errors import Refusal
from world.kafka.metadata import Partition
from world.kafka.partition_changes import Election, Terms, change, reassigned, reverted, target_of

ALL = Terms(lambda broker: True, min_isr=1, elr=True)


def partition(*replicas: int) -> Partition:
    return Partition(replicas=replicas, isr=replicas, leader=replicas[0])


def in_isr(part: Partition, *isr: int, terms: Terms = ALL) -> Partition:
    return change(part, terms, replace(part, isr=isr))


def test_another_order_of_the_same_replicas_is_done_at_once() -> None:
    done = reassigned(partition(1, 2, 3), [3, 2, 1], ALL)
    assert (done.replicas, done.leader, done.reassigning) == ((3, 2, 1), 1, False)


def test_fewer_replicas_are_done_at_once_and_the_leader_stays_or_is_elected() -> None:
    done = reassigned(partition(1, 2, 3), [3, 2], ALL)
    assert (done.replicas, set(done.isr), done.leader) == ((3, 2), {2, 3}, 3)
    assert done.leader_epoch == 1


def test_new_replicas_are_added_first_and_the_old_ones_go_when_they_are_in_the_isr() -> None:
    begun = reassigned(partition(1, 2, 3), [4, 2, 3], ALL)
    assert (begun.replicas, begun.adding, begun.removing) == ((4, 2, 3, 1), (4,), (1,))
    done = in_isr(begun, 1, 2, 3, 4)
    assert (done.replicas, done.isr, done.leader) == ((4, 2, 3), (2, 3, 4), 4)
    assert not done.reassigning


def test_it_is_done_although_a_kept_replica_is_dead_unless_the_set_shrinks() -> None:
    same = reassigned(replace(partition(1, 2, 3), isr=(1, 3)), [4, 2, 3], ALL)
    assert not in_isr(same, 1, 3, 4).reassigning
    smaller = reassigned(replace(partition(1, 2, 3, 5), isr=(1, 3, 5)), [4, 2], ALL)
    assert in_isr(smaller, 1, 3, 4, 5).reassigning
    assert not in_isr(smaller, 1, 2, 3, 4, 5).reassigning


def test_a_later_one_takes_the_place_of_the_one_in_flight() -> None:
    begun = reassigned(partition(1, 2), [3, 2], ALL)
    other = reassigned(begun, [4, 2], ALL)
    assert (other.replicas, other.adding, other.removing) == ((4, 2, 1, 3), (4,), (1, 3))
    assert target_of(other) == {4, 2}


def test_cancelling_leaves_the_replicas_in_stored_order() -> None:
    begun = reassigned(partition(1, 2), [3, 2], ALL)
    back = reverted(begun, ALL, "t", 0)
    assert (back.replicas, back.isr, back.reassigning) == ((2, 1), (1, 2), False)


def test_cancelling_is_refused_where_nothing_in_sync_would_be_left() -> None:
    begun = replace(reassigned(partition(1), [2], ALL), isr=(2,), leader=2)
    with pytest.raises(Refusal, match="unclean leader election"):
        reverted(begun, ALL, "t", 0)
    back = reverted(begun, replace(ALL, election=Election.UNCLEAN), "t", 0)
    assert (back.replicas, back.leader) == ((1,), 1)


def test_the_last_in_the_isr_that_goes_stays_eligible_and_leads_again() -> None:
    only_1 = replace(ALL, acceptable=lambda broker: broker == 1)
    part = replace(partition(1, 2), isr=(1,))
    dead = in_isr(part, terms=replace(ALL, acceptable=lambda broker: broker == 2))
    assert (dead.leader, dead.isr, dead.elr) == (None, (), (1,))
    back = change(dead, only_1)
    assert (back.leader, back.isr, back.elr) == (1, (1,), ())


def test_one_that_comes_back_empty_leads_all_the_same_if_it_was_the_last() -> None:
    dead = in_isr(partition(1), terms=replace(ALL, acceptable=lambda broker: False))
    empty = change(dead, replace(ALL, acceptable=lambda broker: False), unclean_shutdown=1)
    assert (empty.leader, empty.elr, empty.last_known_leader) == (None, (), 1)
    back = change(empty, ALL)
    assert (back.leader, back.isr, back.recovering) == (1, (1,), True)


def test_without_elr_the_last_in_the_isr_stays_in_it() -> None:
    part = replace(partition(1, 2), isr=(1,))
    dead = in_isr(part, terms=Terms(lambda broker: broker == 2, 1, elr=False))
    assert (dead.leader, dead.isr) == (None, (1,))
    unclean = Terms(lambda broker: broker == 2, 1, elr=False, election=Election.UNCLEAN)
    assert in_isr(part, terms=unclean).leader == 2
