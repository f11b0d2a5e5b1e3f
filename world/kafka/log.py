"""One replica's log: offsets, bytes, and how many of each the disk holds."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Run:
    """Offsets from ``start`` on take ``density`` bytes each, up to the next run."""

    start: float
    density: float
    compacted: bool = False


@dataclass(slots=True)
class EpochStart:
    """A leader epoch begins at this offset."""

    epoch: int
    offset: float


@dataclass(slots=True)
class Log:
    """Offsets are fractions inside the model; what clients see is rounded down.

    ``base`` is where the first segment on disk begins; ``start`` the log start offset, which
    DeleteRecords moves at once and which may lie within that segment; ``tiered_to`` the offset up
    to which segments lie in the remote tier, so that ``start`` may be below ``base``.
    """

    base: float = 0.0
    start: float = 0.0
    end: float = 0.0
    tiered_to: float = 0.0
    runs: list[Run] = field(default_factory=list)
    epochs: list[EpochStart] = field(default_factory=list)
    segments: list[float] = field(default_factory=list)
    """Base offsets of the segments after the first; the last one is being written."""

    @property
    def size(self) -> float:
        """Bytes on disk."""
        return self.bytes_between(self.base, self.end)

    def bytes_between(self, first: float, last: float) -> float:
        """Bytes of the offsets from ``first`` up to ``last``."""
        if len(self.runs) == 1:
            run = self.runs[0]
            return max(0.0, last - max(first, run.start)) * run.density
        total = 0.0
        for number, run in enumerate(self.runs):
            until = self.runs[number + 1].start if number + 1 < len(self.runs) else last
            low, high = max(first, run.start), min(last, until)
            if high > low:
                total += (high - low) * run.density
        return total

    def after(self, first: float, size: float) -> float:
        """The offset that lies ``size`` bytes after ``first``; at most the end."""
        left = size
        for number, run in enumerate(self.runs):
            until = self.runs[number + 1].start if number + 1 < len(self.runs) else self.end
            low = max(first, run.start)
            if until <= low:
                continue
            room = (until - low) * run.density
            if left < room:
                return low + left / run.density
            left -= room
        return self.end

    def append(self, size: float, density: float) -> None:
        """Write ``size`` bytes of messages of ``density`` bytes each."""
        if not self.runs or self.runs[-1].density != density:
            if self.runs and self.runs[-1].start == self.end:
                self.runs[-1].density = density
            else:
                self.runs.append(Run(self.end, density))
        self.end += size / density

    def follow(self, leader: Log, until: float) -> None:
        """Take over the leader's messages from this log's end up to an offset."""
        if until <= self.end:
            return
        for number, run in enumerate(leader.runs):
            last = leader.runs[number + 1].start if number + 1 < len(leader.runs) else until
            low, high = max(self.end, run.start), min(until, last)
            if high > low and (not self.runs or self.runs[-1].density != run.density):
                self.runs.append(Run(low, run.density))
        self.end = until
        for epoch in leader.epochs:
            known = self.epochs[-1].epoch if self.epochs else -1
            if epoch.epoch > known and epoch.offset <= until:
                self.epochs.append(EpochStart(epoch.epoch, epoch.offset))

    def begin_at(self, offset: float) -> None:
        """Throw everything away and begin anew at an offset."""
        self.base = self.start = self.end = offset
        self.runs, self.segments, self.epochs = [], [], []

    def truncate(self, offset: float) -> None:
        """Cut off everything from an offset on."""
        if offset >= self.end:
            return
        self.end = max(offset, self.base)
        self.start = min(self.start, self.end)
        self.runs = [run for run in self.runs if run.start < self.end]
        self.segments = [base for base in self.segments if base < self.end]
        self.epochs = [epoch for epoch in self.epochs if epoch.offset < self.end or self.end == 0]

    def end_of_epoch(self, epoch: int) -> float:
        """Where an epoch ends in this log: what a follower that is in it may keep."""
        later = [known.offset for known in self.epochs if known.epoch > epoch]
        return min(later) if later else self.end

    def roll(self, segment_bytes: float) -> None:
        """Begin a new segment wherever one has become full."""
        last = self.segments[-1] if self.segments else self.base
        while self.bytes_between(last, self.end) >= segment_bytes:
            last = self.after(last, segment_bytes)
            self.segments.append(last)

    def compact(self, until: float, kept: float) -> None:
        """Leave this part of the bytes below an offset; of what was compacted before, all."""
        if any(run.start < until for run in self.runs) and until < self.end:
            active = max(run.start for run in self.runs if run.start <= until)
            split = next(run for run in self.runs if run.start == active)
            if split.start < until:
                place = self.runs.index(split) + 1
                self.runs.insert(place, Run(until, split.density, split.compacted))
        for run in self.runs:
            if run.start < until and not run.compacted:
                run.density, run.compacted = run.density * kept, True

    def drop_segments_before(self, offset: float) -> None:
        """Delete the segments that end at or before an offset; never the last one."""
        while self.segments and self.segments[0] <= offset:
            self.base = self.segments.pop(0)
        while len(self.runs) > 1 and self.runs[1].start <= self.base:
            self.runs.pop(0)
