"""A broker that can be cut off from the controller, while clients and other brokers reach it."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from pathlib import Path

from local.kafka.cluster import CONTROLLER_ID, LocalCluster
from local.kafka.jvm import write_properties
from local.kafka.node_config import server_properties


class Line:
    """Carries what brokers and the controller say to each other, until one broker is cut off.

    Brokers name themselves in each request's header: as "4" where they report to the controller,
    and as "raft-client-4" where they read the metadata log.

    :param to: where the controller listens.
    """

    def __init__(self, to: tuple[str, int]) -> None:
        self._to = to
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._ends: list[tuple[str, socket.socket]] = []
        self._cut: set[str] = set()
        self._lock = threading.Lock()
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, broker: int) -> None:
        """From now on nothing of this broker's gets through."""
        with self._lock:
            self._cut = {str(broker), f"raft-client-{broker}"}
            for client, end in self._ends:
                if client in self._cut:
                    _hang_up(end)

    def close(self) -> None:
        """Stop listening, and end what is connected."""
        self._listener.close()
        with self._lock:
            for _, end in self._ends:
                _hang_up(end)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._connect, args=(near,), daemon=True).start()

    def _connect(self, near: socket.socket) -> None:
        try:
            header = near.recv(14, socket.MSG_WAITALL)
            (length,) = struct.unpack(">h", header[12:14])
            name = near.recv(length, socket.MSG_WAITALL)
            far = socket.create_connection(self._to)
            far.sendall(header + name)
        except (OSError, struct.error):  # gone again, or the controller is not there yet
            near.close()
            return
        with self._lock:
            client = name.decode()
            self._ends += [(client, near), (client, far)]
            if client in self._cut:
                _hang_up(near)
        for source, sink in ((near, far), (far, near)):
            threading.Thread(target=_carry, args=(source, sink), daemon=True).start()


def _carry(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass  # the other direction has ended
    finally:
        _hang_up(sink)


def _hang_up(end: socket.socket) -> None:
    with suppress(OSError):  # it is not connected any more
        end.shutdown(socket.SHUT_RDWR)
    end.close()


class CutOffCluster(LocalCluster):
    """Its brokers reach the controller over a line that can be cut for one of them."""

    def __init__(self, directory: Path, brokers: int) -> None:
        super().__init__(directory, brokers)
        host, port = self.controller_address.split(":")
        self.line = Line((host, int(port)))

    def _write_config(self, node: int) -> None:
        super()._write_config(node)
        settings = server_properties(self._layout, node, None)
        line = f"127.0.0.1:{self.line.port}"
        if node == CONTROLLER_ID:
            # What the rate set is by the controller itself counts more than their own settings.
            settings["advertised.listeners"] = f"CONTROLLER://{line}"
        else:
            settings["controller.quorum.voters"] = f"{CONTROLLER_ID}@{line}"
        write_properties(self._layout.config_file(node), settings)

    def stop(self) -> None:
        super().stop()
        self.line.close()
