"""A script carried out: the world is built, actors run, bad luck strikes, and it becomes quiet.

At the end a person cancels what waits for one, and the sweep comes once more: then the judge looks.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from random import Random
from typing import Any

from rehome.cluster.interface.errors import ClusterError
from rehome.cluster.interface.port import ClusterPort
from rehome.domain import clock
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.plan import Plan as RehomePlan
from rehome.execution.access.open_windows import CronWindows
from rehome.ledger.base.records import PlanRecord
from rehome.run.context import RunContext
from world import others
from world.airflow.installed import Airflow
from world.airflow.shape import REASSIGN, SWEEP
from world.airflow.standing_in import standing_in
from world.cruise_control import CruiseControl
from world.ending import become_quiet, give_up_what_waits, let_end, read_ledgers
from world.fate import Fate
from world.history import OTHERS, History
from world.judge.accounts import Accounts
from world.judge.flights import Span
from world.judge.judge import Seen
from world.judge.statements import Statement
from world.kafka.cluster import KafkaModel
from world.kafka.hooks import Fault, FaultKind
from world.kafka.metadata import PartitionKey
from world.ports import Wire
from world.rehome.by_hand import CLUSTER, params_of, written_plan
from world.rehome.channel import Answers, Receiver, Thread
from world.rehome.ears import Ears
from world.rehome.elsewhere import Elsewhere
from world.rehome.installation import Installation
from world.rehome.people import Person
from world.rehome.planning import plan_in_process
from world.rehome.two_entries import TwoEntries
from world.rehome.watched_cluster import by_itself, file_of
from world.running.ledgers import LedgerSite
from world.running.outside import VirtualTime
from world.running.scheduler import Actor, Point, Scheduler
from world.running.trace import Trace
from world.script import Blow, Do, Plan, Script, What
from world.telling import StruckError, lost_messages, told

SWEEP_EVERY_S = 600.0
STRUCK = ("run-", "sweep-", "control-", "collect-", "watch-")
"""Runs whose processes bad luck strikes."""


@dataclass
class Rehome:
    """One installation with all around it."""

    installation: Installation
    airflow: Airflow
    person: Person
    wire: Wire
    points: Counter[str] = field(default_factory=Counter)
    strikes: dict[tuple[str, int], Blow] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Started:
    """A plan that was started, by the installation that did.

    :param unread: partitions with an in-sync replica on a broker that did not run while it was
        made: how many messages they had could not be read; and those that had lost some by then.
    """

    by: str
    plan: RehomePlan
    script: Plan
    unread: frozenset[PartitionKey]


class Stage:
    """One run of a script.

    :ivar records: what ledgers say of plans at the end, by plan id.
    :ivar never_ended: plans that a run drives still when they should have ended;
        ``waits_unnamed``: that wait for a person, and no person was alerted; ``asked_to_end``: that
        a person has cancelled in the end; ``cancelled_in_vain``: of those, what has not ended.
    :ivar elsewhere: another cluster; None = no connection ever leads there.
    :ivar away: when a ledger could not be used; ``ledgers``: the ids of those that each
        installation has had, and since when.
    """

    def __init__(self, script: Script, trace: Trace | None = None) -> None:
        self.script = script
        self.trace = trace or Trace(keep=0)
        self.scheduler = Scheduler(script.order, self.trace)
        self.time = VirtualTime(self.scheduler, script.order)
        self.model = KafkaModel(
            self.time,
            Random(f"model {script.order}"),
            script.racks or script.brokers,
            secured=script.secured,
            cluster_id=CLUSTER,
        )
        self.history = History(self.model.world.log)
        self.fate = Fate(self.model, self.history, [topic.name for topic in script.topics])
        self.statements: list[Statement] = []
        self.accounts = Accounts(self.model.world)
        self.started: list[Started] = []
        self.records: dict[str, PlanRecord] = {}
        self.never_ended: list[str] = []
        self.waits_unnamed: list[str] = []
        self.asked_to_end: set[str] = set()
        self.cancelled_in_vain: list[str] = []
        self.away: dict[str, list[Span]] = {}
        self.ledgers: dict[str, list[tuple[float, str]]] = {}
        self.done: Counter[str] = Counter()
        self.topics = {topic.name: topic for topic in script.topics}
        self.rehomes: dict[str, Rehome] = {}
        self.elsewhere: Elsewhere | None = None
        self.two_entries = TwoEntries(lambda: self.scheduler.at_s)
        self._unread: dict[str, frozenset[PartitionKey]] = {}
        self._other = Wire(OTHERS, self.history, self.scheduler, self.model.world)

    def run(self) -> None:
        """From the first second to the last."""
        with self._in_its_world():
            self._build()
            self.scheduler.on_time = self.model.advance_to
            self.scheduler.on_point = self._strike
            for number, does in enumerate(self.script.does):
                who = f"{does.who}:{does.what}-{number}"
                self.scheduler.spawn(who, lambda does=does: self._does(does), does.at_s)  # type: ignore[misc]
            self.scheduler.run(self.script.quiet_s)
            become_quiet(self)
            let_end(self)
            give_up_what_waits(self)
            read_ledgers(self)

    def end(self) -> None:
        """Drop what still runs."""
        with self._in_its_world():
            self.scheduler.abandon()

    def _in_its_world(self) -> ExitStack:
        """Real code acts in this world meanwhile."""
        held = ExitStack()
        held.enter_context(clock.replaced_by(self.time))
        held.enter_context(standing_in(self._site))
        held.enter_context(Ears(self._site, self._where, self.accounts).listening())
        return held

    def _site(self) -> Installation:
        """Of the actor that runs now."""
        return self.rehomes[self._actor().partition(":")[0]].installation

    def _where(self) -> str:
        """What of it runs: the task."""
        return self._actor().partition(".")[2]

    def _actor(self) -> str:
        actor = self.scheduler.current
        assert actor is not None
        return actor.name

    # -- the beginning -----------------------------------------------------------------------------

    def _build(self) -> None:
        actions = self.model.actions
        if self.script.secured:
            self.fate.all_rights()
        for topic in self.script.topics:
            actions.create_topic(topic.name, topic.partitions, topic.configs)
            self._fill(topic.name)
        for config in self.script.configs:
            does = _as_admin(config.of_topic, config.name, config.key, config.value)
            change = others.config_change(does)
            actions.set_config(change.resource, change.key, change.value)
        self.model.advance_to(self.time.now())
        self.history.begin()
        if any(does.what is What.LED_ELSEWHERE for does in self.script.does):
            self.elsewhere = Elsewhere(self.script, self.time, self.scheduler)
        for name in self.script.installations:
            self.rehomes[name] = self._rehome(name)

    def _fill(self, name: str) -> None:
        topic = self.topics[name]
        for number in range(len(topic.partitions)):
            part = TopicPartition(name, number)
            self.model.actions.fill(part, topic.size_bytes)
            self.model.actions.delete_records(part, topic.deleted)
            self.model.actions.produce(part, topic.inflow)

    def _rehome(self, name: str) -> Rehome:
        wire = Wire(name, self.history, self.scheduler, self.model.world)

        def connect() -> ClusterPort:
            if self.elsewhere is not None and name in self.elsewhere.led:
                return self.elsewhere.connect(name)
            port = self.model.port("User:rehome", name)
            port.hooks = wire.hooks()
            return port

        site = LedgerSite(name, self.scheduler)
        site.on_plan = lambda plan: self._made(rehome, plan)
        self._has_ledger(name, site)
        installation = Installation(
            name,
            site,
            connect,
            self.statements.append,
            lambda: self.scheduler.at_s,
            wire.calls_so_far,
            lambda operator, context: self._plans(rehome, operator, context),
            lambda **options: Thread(self.scheduler, airflow.thread, **options),
            Receiver(self.scheduler) if name in self.script.channels else None,
        )
        airflow = Airflow(self.scheduler, name, clock.new_id)
        airflow.one_run = name in self.script.one_run
        airflow.has_channel = installation.receiver is not None
        airflow.every(SWEEP_EVERY_S, SWEEP)
        for watch in (each for each in self.script.watches if each.of == name):
            installation.file = file_of(watch)
            airflow.watch(watch.every_s, CronWindows(installation.file.clusters[CLUSTER].windows))
        strikes = {(s.after, s.point): s.blow for s in self.script.strikes if s.whom == name}
        rehome = Rehome(installation, airflow, Person(airflow), wire, strikes=strikes)
        return rehome

    # -- what is done ------------------------------------------------------------------------------

    def _does(self, does: Do) -> None:
        self.done[does.what] += 1
        if self.elsewhere is not None and does.what is What.BROKER_LOST:
            self.elsewhere.lose(does.args[0])
        if does.who in self.rehomes:
            self._at_rehome(self.rehomes[does.who], does)
        elif not self.fate.does(does):
            self._by_others(does)

    def _by_others(self, does: Do) -> None:
        port = self.model.port("User:admin", OTHERS)
        port.hooks = self._other.hooks()
        if does.what is What.CRUISE_CONTROL:
            topic, number, target, rate = does.args
            with suppress(ClusterError):
                tool = CruiseControl(port, self.scheduler.wait)
                tool.execute(TopicPartition(topic, number), target, rate)
            return
        known = does.what is What.CREATE_TOPIC and self._has_topic(does.args[0])
        others.act(port, does, self.topics)
        if does.what is What.CREATE_TOPIC and not known and self._has_topic(does.args[0]):
            self._fill(does.args[0])

    def _has_topic(self, name: str) -> bool:
        return self.model.actions.key(TopicPartition(name, 0)) is not None

    def _at_rehome(self, rehome: Rehome, does: Do) -> None:
        site = rehome.installation.site
        match does.what:
            case What.START:
                self._start(rehome, self.script.plans[does.args[0]])
            case What.CLOCK_JUMPS:
                self.time.ahead[does.who] = timedelta(seconds=does.args[0])
            case What.LEDGER_AWAY:
                began = self.scheduler.at_s
                site.away = True
                self.scheduler.wait(does.args[0])
                site.away = False
                self.away.setdefault(does.who, []).append(Span(began, self.scheduler.at_s))
            case What.LEDGER_BACKED_UP:
                site.back_up()
            case What.LEDGER_RESTORED:
                site.restore()
                self._has_ledger(does.who, site)
            case What.ENTRY_ADDED:
                self.two_entries.add(rehome.installation)
                self.scheduler.wait(does.args[0])
                self.two_entries.take_away(rehome.installation)
            case What.CHANNEL_FALTERS:
                self._falters(rehome.installation.receiver, *does.args)
            case What.LED_ELSEWHERE:
                assert self.elsewhere is not None
                self.elsewhere.led.add(does.who)
                self.scheduler.wait(does.args[0])
                self.elsewhere.led.discard(does.who)
            case What.LEDGER_NEW:
                site.begin_anew()
                self._has_ledger(does.who, site)
            case _:
                rehome.person.does(does)

    def _falters(self, receiver: Receiver | None, how: str, lasts_s: float) -> None:
        """For a while, or until the world becomes quiet."""
        assert receiver is not None
        receiver.how = Answers(how)
        self.scheduler.wait(lasts_s)
        receiver.how = Answers.AT_ONCE

    def _has_ledger(self, name: str, site: LedgerSite) -> None:
        """From now on."""
        self.ledgers.setdefault(name, []).append((self.scheduler.at_s, site.ledger_id))

    def _start(self, rehome: Rehome, script: Plan) -> None:
        """A person triggers a run."""
        plan = None
        if not script.drains:
            plan = written_plan("", script, self.model.world, self.topics)
        run = rehome.airflow.trigger(REASSIGN, params_of(script, plan))
        rehome.installation.asked[run.run_id] = script

    def _plans(self, rehome: Rehome, operator: Any, context: RunContext) -> None:
        """As the Spark application of a run; what is not tried out, a person has written."""
        site, run = rehome.installation, context.dag_run
        script = site.asked.get(run.run_id) or by_itself(site.name, run, self.script.watches)

        def by_hand(plan_id: str) -> RehomePlan | None:
            site.scripts[plan_id] = script or self._like(rehome)
            if script is None or script.drains or script.tried_out:
                return None
            return written_plan(plan_id, script, self.model.world, self.topics)

        self._unread[rehome.installation.name] = self._with_brokers_away()
        plan_in_process(site, operator, by_hand)

    def _with_brokers_away(self) -> frozenset[PartitionKey]:
        """Partitions whose in-sync replicas do not all run."""
        world = self.model.world
        away = {broker for broker, node in world.nodes.items() if not node.running}
        known = world.image.partitions.items()
        return frozenset(key for key, state in known if away & {*(state.isr or state.replicas)})

    def _like(self, rehome: Rehome) -> Plan:
        """What a plan is like that no script has: one that takes another back, or follows it up."""
        found = [each.script for each in self.started if each.by == rehome.installation.name]
        return replace(found[-1], tried_out=True, approval=False)

    def _made(self, rehome: Rehome, plan: RehomePlan) -> None:
        """A ledger is about to record a plan."""
        name, site = rehome.installation.name, rehome.installation
        if all(each.plan.plan_id != plan.plan_id for each in self.started):
            unread = self._unread.get(name, frozenset()) | self._with_brokers_away()
            unread |= {key for key, _ in lost_messages(self)}
            script = site.scripts.get(plan.plan_id) or Plan(name, ())  # else one that is adopted
            self.started.append(Started(name, plan, script, unread))

    # -- bad luck ----------------------------------------------------------------------------------

    def _strike(self, actor: Actor, kind: Point, text: str) -> None:
        machine, _, process = actor.name.partition(":")
        rehome = self.rehomes.get(machine)
        if rehome is None or not process.startswith(STRUCK):
            return
        if not rehome.strikes:
            return
        rehome.points[""] += 1
        blow = rehome.strikes.get(("", rehome.points[""]))
        if blow is None and kind is Point.ANSWER:
            rehome.points[text] += 1
            blow = rehome.strikes.get((text, rehome.points[text]))
        if blow is None:
            return
        self.done[blow] += 1
        match blow:
            case Blow.DEATH:
                rehome.airflow.kill(actor)
            case Blow.FAILURE:
                raise StruckError(f"at {kind}")
            case _:
                one = self.scheduler.rng.randint(1, self.script.brokers)
                broker = one if blow in (Blow.BROKER_LOST, Blow.BROKER_ANSWER_LOST) else None
                rehome.wire.pending[actor] = Fault(FaultKind(blow.value), broker)

    def seen(self) -> Seen:
        """What the judge is told."""
        return told(self)


def _as_admin(of_topic: bool, name: str, key: str, value: str) -> Do:
    if of_topic:
        return Do(0, OTHERS, What.SET_LIST, (name, key, value))
    return Do(0, OTHERS, What.SET_RATE, (int(name) if name else None, key, value))
