"""The TCP sockets on which this process, and all that it has started, listen."""

from __future__ import annotations

import ipaddress
import threading
from types import TracebackType

import psutil

LOOK_AGAIN_S = 2.0
SPARK = "org.apache.spark.deploy.SparkSubmit"


class ListeningSockets:
    """Looks at them every other second: a Spark driver is there for some seconds only.

    :ivar seen: names of processes, each with the addresses on which it has listened.
    """

    def __init__(self) -> None:
        self.seen: dict[str, set[str]] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def elsewhere(self) -> dict[str, set[str]]:
        """Those that others than this machine can reach."""
        self.look()
        outside = {
            name: {address for address in addresses if not _is_loopback(address)}
            for name, addresses in dict(self.seen).items()
        }
        return {name: addresses for name, addresses in outside.items() if addresses}

    def look(self) -> None:
        """Note those that there are now."""
        own = psutil.Process()
        for process in (own, *own.children(recursive=True)):
            try:
                spark = any(SPARK in part for part in process.cmdline())
                name = SPARK if spark else process.name()
                found = process.net_connections("tcp")
            except psutil.Error:  # it has ended, or is another user's
                continue
            for socket in found:
                if socket.status == psutil.CONN_LISTEN:
                    self.seen.setdefault(name, set()).add(socket.laddr.ip)

    def _follow(self) -> None:
        while not self._over.wait(LOOK_AGAIN_S):
            self.look()

    def __enter__(self) -> ListeningSockets:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()


def _is_loopback(address: str) -> bool:
    found = ipaddress.ip_address(address)
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        return found.ipv4_mapped.is_loopback
    return found.is_loopback
