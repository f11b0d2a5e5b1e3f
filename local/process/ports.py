"""Ports for processes that bind them a moment after they were chosen."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence

LOWEST, HIGHEST = 20_000, 32_000
"""Below the ephemeral range, so that no outgoing connection takes a port before it is bound."""
OWN = 120
"""Ports that a process chooses from before others: another process begins elsewhere."""


class _Chosen:
    """What this process has chosen last; the next choice begins behind it."""

    last = LOWEST + os.getpid() * OWN % (HIGHEST - LOWEST)


def free_ports(count: int) -> Sequence[int]:
    """Loopback ports that are free now, none of them chosen a short while ago.

    :raises OSError: there are not as many.
    """
    ports: list[int] = []
    for _ in range(HIGHEST - LOWEST):
        _Chosen.last = LOWEST + (_Chosen.last + 1 - LOWEST) % (HIGHEST - LOWEST)
        if _is_free(_Chosen.last):
            ports.append(_Chosen.last)
        if len(ports) == count:
            return ports
    raise OSError(f"There are no {count} free ports on the loopback interface.")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
