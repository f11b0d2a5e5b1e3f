"""Scripts drawn by a seed: small clusters, one or two Rehomes, other hands, bad luck."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from world.airflow.shape import IN_WINDOW, REASSIGN, graph_of
from world.luck_of_actors import with_actors
from world.others import LISTS, RATES
from world.script import Blow, Config, Do, OwnRates, Plan, Script, Strike, Topic, Watch, What

TASKS = graph_of(REASSIGN).order
QUIET_S = 400.0
WATCHED = 0.03
"""Of seeds: in these an installation watches the cluster."""
FOREIGN = 0.06
"""Of seeds, so many have a person act on what other clients have in flight."""
OWN_RATES = 0.1
"""Of plans: these have rates of single brokers."""
IN_STEPS = 0.1
"""Of plans: these give a partition its new replicas in steps."""
DAY_S = 86_400
MOST_POINTS = 700
"""Of the processes of a plan that little happens to."""
RATE_VALUES = (500_000, 1_000_000, 3_000_000, 5_000_000, 20_000_000)
AT_REHOME = (
    *(What.PAUSE, What.RESUME, What.CHANGE_THROTTLE, What.CANCEL, What.CLEAR, What.MARK),
    *(What.PAUSE_DAG, What.UNPAUSE_DAG, What.DELETE_RUN, What.KILL, What.SWEEP),
    *(What.CLOCK_JUMPS, What.LEDGER_AWAY, What.LEDGER_BACKED_UP, What.LEDGER_RESTORED),
    *(What.LEDGER_NEW, What.ROLL_BACK, What.START),
)
BY_ADMIN = (
    *(What.SET_RATE, What.DELETE_RATE, What.SET_LIST, What.ADD_TO_LIST, What.DELETE_LIST),
    *(What.DELETE_TOPIC, What.CREATE_TOPIC, What.REASSIGN, What.CANCEL_ALL),
    *(What.TOOL_EXECUTE, What.TOOL_VERIFY, What.CRUISE_CONTROL, What.MOVE_LOG_DIR),
)
OF_BROKERS = (
    *(What.BROKER_KILLED, What.BROKER_STOPPED, What.BROKER_STARTED, What.BROKER_WIPED),
    *(What.BROKER_LOST, What.DISK_FILLED, What.LOG_DIR_FAILED),
)
ANSWERS = ("approve", "approve", "approve", "send_back", "reject")
OPERATIONS = ("ALL", "ALL", "ALTER_CONFIGS", "DESCRIBE")


def script_of(seed: int) -> Script:
    """The script of a seed."""
    return with_actors(_Drawing(seed).script(), seed)


class _Drawing:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = Random(f"script {seed}")
        self.brokers = self.rng.choice((3, 4, 4, 5, 6))
        self.topics = tuple(self._topic(name) for name in "tuv"[: self.rng.randint(1, 3)])

    def script(self) -> Script:
        rng = self.rng
        two = rng.random() < 0.4
        plans = [self._plan("A")]
        if two:
            plans.append(self._plan("B"))
        does = [Do(round(rng.uniform(1, 20), 1), "A", What.START, (0,))]
        if two:
            does.append(Do(round(rng.uniform(1, 120), 1), "B", What.START, (1,)))
        names = sorted({plan.of for plan in plans})
        does += [self._at_rehome(rng.choice(names)) for _ in range(rng.choice((0, 0, 1, 2, 3)))]
        does += [
            Do(self._when(), plan.of, What.ANSWER, (rng.choice(ANSWERS),))
            for plan in plans
            if plan.approval
            for _ in range(rng.choice((0, 1, 1, 2)))
        ]
        does += [self._by_admin() for _ in range(rng.choice((0, 0, 1, 2, 4)))]
        for _ in range(rng.choice((0, 0, 0, 1, 2))):
            does += self._of_brokers()
        if rng.random() < 0.1:
            does += self._rights()
        watches, lost = self._watched(names)
        does += lost
        plans, asked = self._rates_by_broker(plans)
        does += [*asked, *self._of_others(names)]
        plans = self._in_steps(plans)
        strikes = [self._strike(rng.choice(names)) for _ in range(rng.choice((0, 1, 1, 2, 3)))]
        return Script(
            self.seed,
            self.brokers,
            self.topics,
            tuple(plans),
            tuple(self._config() for _ in range(rng.choice((0, 0, 1, 2)))),
            tuple(sorted(does, key=lambda does: does.at_s)),
            tuple(strikes),
            max(QUIET_S, *(does.at_s + 1 for does in lost)) if lost else QUIET_S,
            watches,
        )

    def _watched(self, names: Sequence[str]) -> tuple[tuple[Watch, ...], list[Do]]:
        """Who watches, and what becomes of brokers then; drawn apart: other seeds stay as they
        are.
        """
        rng = Random(f"watch {self.seed}")
        if rng.random() >= WATCHED:
            return (), []
        watch = Watch(
            rng.choice((*names, "W")),  # W makes no plans but by itself
            rng.choice(("heal", "heal", "heal", "propose")),
            rng.choice((90, 120)),
            rng.choice((100, 150)),
            rng.choice((None, None, (240, 300), (360, 600), (480, 300), (600, 1800))),
            rng.choice((1, 3, 3)),
            rng.choice((None, None, 30_000_000, 100_000_000)),
            rng.choice((1_000_000, 2_000_000, 5_000_000)),
        )
        watch = replace(watch, own_plan=rng.random() < 0.7)
        broker, at_s = rng.randint(1, self.brokers), round(rng.uniform(60, 200), 1)
        does = self._dies(rng, broker, at_s)
        if rng.random() < 0.3:  # another one; half of them are of its data centre
            other = rng.choice([each for each in range(1, self.brokers + 1) if each != broker])
            at = round(at_s + rng.choice((1, 60, 240)), 1)
            does.append(Do(at, "fate", What.BROKER_LOST, (other,)))
        if rng.random() < 0.15:
            at = round(rng.uniform(60, 300), 1)
            does.append(Do(at, watch.of, What.PAUSE_DAG, (IN_WINDOW,)))
        if watch.of == "W" and rng.random() < 0.3:  # a snapshot is taken tomorrow
            at = round(rng.uniform(60, 100), 1)
            ahead = Do(at, watch.of, What.CLOCK_JUMPS, (DAY_S,))
            does += [ahead, Do(at + 130, watch.of, What.CLOCK_JUMPS, (0,))]
        return (watch,), does

    @staticmethod
    def _dies(rng: Random, broker: int, at_s: float) -> list[Do]:
        """A broker is lost, restarts, or does so again and again."""
        kind = rng.random()
        if kind < 0.6:
            return [Do(at_s, "fate", What.BROKER_LOST, (broker,))]
        away_s, times = rng.choice((20, 100, 200)), 4 if kind > 0.9 else 1
        return [
            Do(round(at_s + number * 240 + seconds, 1), "fate", what, (broker,))
            for number in range(times)
            for seconds, what in ((0, What.BROKER_KILLED), (away_s, What.BROKER_STARTED))
        ]

    def _rates_by_broker(self, plans: list[Plan]) -> tuple[list[Plan], list[Do]]:
        """Rates of single brokers, and changes of these and of the moves at once; drawn apart."""
        rng, drawn, asked = Random(f"rates {self.seed}"), [], list[Do]()
        for plan in plans:
            chance = rng.random()
            if chance < OWN_RATES and not plan.unthrottled:
                drawn.append(replace(plan, own=self._own_rates(rng)))
            else:
                drawn.append(plan)
            if chance < OWN_RATES and rng.random() < 0.5 and not plan.unthrottled:
                rate = rng.choice((None, None, *RATE_VALUES[1:4]))
                args: tuple[object, ...] = (rate, rng.choice(((), self._own_rates(rng))))
                at = round(rng.uniform(2, 120), 1)
                asked.append(Do(at, plan.of, What.CHANGE_RATES, args))
            if rng.random() < OWN_RATES:
                at = round(rng.uniform(2, 120), 1)
                asked.append(Do(at, plan.of, What.CHANGE_MOVES, (rng.choice((1, 2, 6)),)))
        return drawn, asked

    def _in_steps(self, plans: list[Plan]) -> list[Plan]:
        """So many new replicas at once, in some plans; then some partitions get all of theirs new,
        or more of them than they have. Drawn apart.
        """
        rng, drawn = Random(f"steps {self.seed}"), list[Plan]()
        for plan in plans:
            if rng.random() >= IN_STEPS or plan.log_dirs:
                drawn.append(plan)
                continue
            moves = tuple((t, n, self._others_than(rng, t, n)) for t, n, _ in plan.moves)
            drawn.append(replace(plan, moves=moves, at_once=rng.choice((1, 1, 2))))
        return drawn

    def _others_than(self, rng: Random, topic: str, number: int) -> tuple[int, ...]:
        current = next(t.partitions[number] for t in self.topics if t.name == topic)
        others = [each for each in range(1, self.brokers + 1) if each not in current]
        new = rng.sample(others, min(len(others), rng.choice((1, 2, 3))))
        kept = current[: max(0, len(current) - len(new))] if rng.random() < 0.7 else current
        return (*new, *kept) if rng.random() < 0.5 else (*kept, *new)

    def _of_others(self, names: Sequence[str]) -> list[Do]:
        """A person has cancelled or adopted what others have in flight of a topic, of an admin or
        of another Rehome; drawn apart.
        """
        rng = Random(f"foreign {self.seed}")
        if rng.random() >= FOREIGN:
            return []
        at, who, topic = round(rng.uniform(10, 150), 1), rng.choice(names), rng.choice(self.topics)
        asked: tuple[What, tuple[object, ...]] = (What.CANCEL_FOREIGN, (topic.name,))
        if rng.random() < 0.5:
            asked = (What.ADOPT_FOREIGN, (topic.name, rng.choice(RATE_VALUES[:3])))
        answers = Do(round(at + rng.uniform(6, 60), 1), who, What.ANSWER, (rng.choice(ANSWERS),))
        does = [Do(at, who, *asked), answers]
        if rng.random() < 0.7:
            number = rng.randrange(len(topic.partitions))
            count = min(self.brokers, max(1, len(topic.partitions[number])))
            target = tuple(rng.sample(range(1, self.brokers + 1), count))
            before = round(at - rng.uniform(0.5, 4), 1)
            does.append(Do(before, "admin", What.REASSIGN, (topic.name, number, target)))
        return does

    def _own_rates(self, rng: Random) -> OwnRates:
        chosen = sorted(rng.sample(range(1, self.brokers + 1), rng.choice((1, 1, 2))))
        rates = (None, *RATE_VALUES[:4])
        found = [(broker, rng.choice(rates), rng.choice(rates)) for broker in chosen]
        return tuple((b, sent or 1_000_000 if not got else sent, got) for b, sent, got in found)

    def _topic(self, name: str) -> Topic:
        rng = self.rng
        factor = rng.choice((1, 2, 2, 3))
        replicas = [self._replicas(factor) for _ in range(rng.randint(1, 3))]
        size = rng.choice((5_000_000, 20_000_000, 60_000_000, 120_000_000))
        inflow = rng.choice((0, 0, 50_000, 200_000))
        min_isr = min(len(replicas[0]), rng.choice((1, 1, 2)))
        return Topic(name, tuple(replicas), size, inflow, min_isr=min_isr)

    def _replicas(self, factor: int) -> tuple[int, ...]:
        return tuple(self.rng.sample(range(1, self.brokers + 1), min(factor, self.brokers)))

    def _plan(self, of: str) -> Plan:
        rng = self.rng
        places = [(t.name, n) for t in self.topics for n in range(len(t.partitions))]
        chosen = rng.sample(places, rng.randint(1, min(4, len(places))))
        moves = tuple((t, n, self._target(t, n)) for t, n in sorted(chosen))
        window = round(rng.uniform(60, 400)) if rng.random() < 0.2 else None
        rate = rng.choice((1_000_000, 2_000_000, 5_000_000))
        plan = Plan(of, moves, rate, rng.choice((1, 2, 4)), window, rng.random() < 0.05)
        plan = replace(plan, approval=rng.random() < 0.15)
        kind = rng.random()
        if kind < 0.15 and self.brokers > 3:
            drains = (rng.randint(1, self.brokers),)
            return replace(
                plan, moves=(), drains=drains, tried_out=True, cordons=rng.random() < 0.5
            )
        return replace(plan, log_dirs=kind > 0.92, tried_out=0.75 < kind < 0.85)

    def _target(self, topic: str, number: int) -> tuple[int, ...]:
        current = next(t.partitions[number] for t in self.topics if t.name == topic)
        return self._replicas(len(current))

    def _when(self) -> float:
        """Mostly while plans run."""
        return round(self.rng.uniform(2, self.rng.choice((60, 60, 120, 360))), 1)

    def _at_rehome(self, name: str) -> Do:
        rng, what = self.rng, self.rng.choice(AT_REHOME)
        args: tuple[object, ...] = ()
        match what:
            case What.CHANGE_THROTTLE:
                args = (rng.choice(RATE_VALUES),)
            case What.CLEAR:
                args = (rng.choice(TASKS),)
            case What.MARK:
                args = (rng.choice(("success", "failed")),)
            case What.CLOCK_JUMPS:
                args = (rng.choice((-300, -20, 20, 300)),)
            case What.LEDGER_AWAY:
                args = (rng.choice((5, 60, 200)),)
            case What.START:  # the same once more
                args = (0 if name == "A" else 1,)
        return Do(self._when(), name, what, args)

    def _by_admin(self) -> Do:
        rng, what = self.rng, self.rng.choice(BY_ADMIN)
        topic = rng.choice(self.topics)
        number = rng.randrange(len(topic.partitions))
        broker = rng.choice((None, *range(1, self.brokers + 1)))
        args: tuple[object, ...] = (topic.name,)
        match what:
            case What.SET_RATE:
                args = (broker, rng.choice(RATES), rng.choice(RATE_VALUES))
            case What.DELETE_RATE:
                args = (broker, rng.choice(RATES))
            case What.SET_LIST | What.ADD_TO_LIST:
                item = f"{number}:{rng.randint(1, self.brokers)}"
                args = (topic.name, rng.choice(LISTS), item)
                if what is What.SET_LIST and rng.random() < 0.2:
                    args = (*args[:2], "*")
            case What.DELETE_LIST:
                args = (topic.name, rng.choice(LISTS))
            case What.REASSIGN:
                args = (topic.name, number, self._target(topic.name, number))
            case What.MOVE_LOG_DIR:
                args = (topic.name, number, rng.choice(topic.partitions[number]))
            case What.TOOL_EXECUTE | What.CRUISE_CONTROL:
                target = self._target(topic.name, number)
                args = (topic.name, number, target, rng.choice(RATE_VALUES))
            case What.TOOL_VERIFY:
                args = (topic.name, number)
        return Do(self._when(), "admin", what, args)

    def _of_brokers(self) -> list[Do]:
        rng, what = self.rng, self.rng.choice(OF_BROKERS)
        broker, number, at_s = rng.randint(1, self.brokers), rng.choice((0, 1)), self._when()
        if what is What.BROKER_WIPED:  # what runs is not wiped: it is replaced
            killed = Do(at_s, "fate", What.BROKER_KILLED, (broker,))
            return [killed, Do(at_s + rng.choice((3, 20, 60)), "fate", what, (broker,))]
        of_disk = what in (What.DISK_FILLED, What.LOG_DIR_FAILED)
        return [Do(at_s, "fate", what, (broker, number) if of_disk else (broker,))]

    def _rights(self) -> list[Do]:
        """Rights go, and come back, or stay away until the world becomes quiet."""
        rng = self.rng
        topic = rng.choice(("", *(each.name for each in self.topics)))
        gone = Do(self._when(), "fate", What.RIGHTS_REVOKED, (topic, rng.choice(OPERATIONS)))
        back = Do(gone.at_s + rng.choice((5, 30, 200)), "fate", What.RIGHTS_GIVEN_BACK, (topic,))
        return [gone, back] if rng.random() < 0.7 else [gone]

    def _strike(self, name: str) -> Strike:
        return Strike(name, self.rng.randint(1, MOST_POINTS), self.rng.choice(tuple(Blow)))

    def _config(self) -> Config:
        rng = self.rng
        if rng.random() < 0.5:
            name = rng.choice(("", *map(str, range(1, self.brokers + 1))))
            return Config(False, name, rng.choice(RATES), str(rng.choice(RATE_VALUES)))
        topic = rng.choice(self.topics)
        item = f"{rng.randrange(len(topic.partitions))}:{rng.randint(1, self.brokers)}"
        return Config(True, topic.name, rng.choice(LISTS), item)
