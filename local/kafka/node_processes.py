"""The JVMs of a local cluster: started under a guard, signalled and reaped by node id."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterable, Sequence

from local.kafka.jvm import VERSION, ClusterStartError, java_command
from local.kafka.node_config import NodeLayout
from local.process.guard import Guard


class NodeProcesses:
    """Starts and ends nodes; whatever happens to this process, theirs end with it.

    :param heap_mb: maximal heap of each JVM, in MB; ``java_options``: further ones.
    :param version: of Kafka, where none is named for a node.
    :ivar versions: of single nodes, for their next start.
    """

    def __init__(
        self,
        layout: NodeLayout,
        heap_mb: int,
        java_options: Sequence[str] = (),
        version: str = VERSION,
    ) -> None:
        self.version = version
        self.versions: dict[int, str] = {}
        self._java_options = tuple(java_options)
        self._layout = layout
        self._heap_mb = heap_mb
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._paused: set[int] = set()
        self._guard: Guard | None = None

    @property
    def pids(self) -> dict[int, int]:
        """Process ids by node id; a node that ended by itself stays until it is reaped."""
        return {node: process.pid for node, process in self._running.items()}

    @property
    def able_to_answer(self) -> set[int]:
        """Nodes that are not paused."""
        return self._running.keys() - self._paused

    def launch(self, node: int) -> None:
        """Start a formatted node."""
        self._guard = self._guard or Guard()
        config = str(self._layout.config_file(node))
        command = java_command(
            self._heap_mb,
            *(*self._java_options, "kafka.Kafka", config),
            version=self.versions.get(node, self.version),
        )
        self._running[node] = self._guard.spawn(command, self._layout.log_file(node))

    def pause(self, node: int) -> None:
        """SIGSTOP."""
        self._signal(node, signal.SIGSTOP)
        self._paused.add(node)

    def resume(self, node: int) -> None:
        """SIGCONT."""
        self._signal(node, signal.SIGCONT)
        self._paused.discard(node)

    def end(self, node: int, number: int = signal.SIGKILL, timeout_s: float = 60.0) -> None:
        """Send a signal that ends the node, wait until it has ended.

        :raises TimeoutError: when it has not within ``timeout_s``.
        """
        self._signal(node, number)
        process = self._running[node]
        if self._guard is None or not self._guard.reap(process, timeout_s):
            raise TimeoutError(f"node {node} (pid {process.pid}) did not end in {timeout_s:g} s")
        del self._running[node]
        self._paused.discard(node)

    def close(self) -> None:
        """Kill what runs. Idempotent."""
        for node in list(self._running):
            self.end(node)
        if self._guard is not None:
            self._guard.close()
            self._guard = None

    def raise_if_ended(self, nodes: Iterable[int]) -> None:
        """Report a node that ended by itself.

        :raises ClusterStartError: with the tail of its log.
        """
        for node in self._running.keys() & set(nodes):
            code = self._running[node].poll()
            if code is not None:
                tail = self._layout.log_tail(node)
                raise ClusterStartError(f"Node {node} ended with code {code}:\n{tail}")

    def _signal(self, node: int, number: int) -> None:
        process = self._running[node]
        if process.poll() is None:
            process.send_signal(number)
