"""The demo's screen: stages, a live table where there is a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

STATUS_STYLE = {"In sync": "green", "Behind": "yellow", "Unknown": "red", "Broker": "red"}


class Screen:
    """Prints what happens, with the seconds since the start in front.

    :param console: rich's console; plain text comes out where it is not a terminal.
    """

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(highlight=False, soft_wrap=True)
        self._started = time.monotonic()
        self._live: Live | None = None
        self._last_plain = 0.0

    def title(self, text: str) -> None:
        """A line that opens a part of the demo."""
        self.console.print()
        self.console.print(Text(text, style="bold"))

    def say(self, text: str, style: str = "") -> None:
        """One line of what just happened."""
        elapsed = Text(f"{time.monotonic() - self._started:6.1f} s  ", style="dim")
        self.console.print(elapsed + Text(text, style=style))

    def check(self, ok: bool, text: str) -> bool:
        """One line of proof; returns ``ok``."""
        mark = Text("  ok  ", style="bold green") if ok else Text(" FAIL ", style="bold red")
        self.console.print(mark + Text(" " + text))
        return ok

    @contextmanager
    def live(self) -> Iterator[None]:
        """While open, :meth:`progress` redraws in place (on a terminal)."""
        if not self.console.is_terminal:
            yield
            return
        with Live(console=self.console, refresh_per_second=4, transient=True) as self._live:
            try:
                yield
            finally:
                self._live = None

    def progress(self, rows: Sequence[Sequence[str]], footer: str, every_s: float = 5.0) -> None:
        """Show KIP-179's table: rows of topic, partition, broker, status, bytes.

        Without a terminal only the footer is printed, at most once per ``every_s`` seconds.
        """
        if self._live is not None:
            self._live.update(_table(rows, footer, self.console.height - 6))
        elif time.monotonic() - self._last_plain >= every_s:
            self._last_plain = time.monotonic()
            self.say(footer)


def _table(rows: Sequence[Sequence[str]], footer: str, most: int) -> Table:
    table = Table(caption=footer, caption_justify="left", box=None, pad_edge=False)
    for name, justify in (
        ("Topic", "left"),
        ("Partition", "right"),
        ("Broker", "right"),
        ("Status", "left"),
        ("Bytes", "right"),
    ):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    shown = sorted(rows, key=lambda row: row[3] == "In sync")[: max(most, 5)]
    for row in shown:
        style = next((s for word, s in STATUS_STYLE.items() if row[3].startswith(word)), "")
        table.add_row(*row[:3], Text(row[3], style=style), *row[4:])
    if len(shown) < len(rows):
        table.add_row(f"… {len(rows) - len(shown)} more", "", "", "", "", style="dim")
    return table
