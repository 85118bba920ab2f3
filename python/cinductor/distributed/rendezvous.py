"""How processes of one program find each other: a store of texts by key, which process 0 serves.

Each wait has a timeout. Messages are lines of JSON; every program that can connect can write, so the address must be one
that only the program's own machines reach.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from typing import Any, NamedTuple

from .. import _core

LONGEST = 1 << 20  # bytes of a message
EXTRA = 5.0  # seconds that an answer may take beside the wait itself


class Values:
    """Texts by key, which threads wait for."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.changed = threading.Condition()

    def set(self, key: str, value: str) -> None:
        """Store a text. Raises ValueError for a key that has one."""
        with self.changed:
            if key in self.values:
                raise ValueError(f"{key} is there already")
            self.values[key] = value
            self.changed.notify_all()

    def get(self, key: str, timeout: float) -> str | None:
        """The text of a key, when it has one; None after the timeout."""
        with self.changed:
            self.changed.wait_for(lambda: key in self.values, timeout)
            return self.values.get(key)


class Server:
    """Values that other processes read and write."""

    def __init__(self, values: Values, host: str, port: int) -> None:
        self.values = values
        self.socket = socket.create_server((host, port))
        threading.Thread(target=self.accept, name="cinductor-rendezvous", daemon=True).start()

    def accept(self) -> None:
        """Serve connections until the socket is closed."""
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), name="cinductor-rendezvous", daemon=True).start()

    def serve(self, connection: socket.socket) -> None:
        """Answer the messages of one process. Another kind of message ends the connection."""
        with connection, connection.makefile("rwb") as file:
            while line := file.readline(LONGEST):
                try:
                    answer = self.answer(json.loads(line))
                    file.write(json.dumps(answer).encode() + b"\n")
                    file.flush()
                except (ValueError, KeyError, TypeError, OSError):
                    return

    def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        """The answer to one message."""
        key = str(message["key"])
        if "value" not in message:
            return {"value": self.values.get(key, float(message["timeout"]))}
        try:
            self.values.set(key, str(message["value"]))
        except ValueError as error:
            return {"error": str(error)}
        return {}

    def close(self) -> None:
        """Accept no more connections."""
        self.socket.close()


class Client:
    """Values of process 0."""

    def __init__(self, host: str, port: int, timeout: float) -> None:
        self.lock = threading.Lock()
        self.socket = connect(host, port, timeout)
        self.file = self.socket.makefile("rwb")

    def ask(self, wait: float, **message: Any) -> dict[str, Any]:
        """Send a message and read the answer. Raises DeviceError if process 0 does not answer."""
        with self.lock:
            try:
                self.socket.settimeout(wait + EXTRA)
                self.file.write(json.dumps(message).encode() + b"\n")
                self.file.flush()
                line = self.file.readline(LONGEST)
                if not line:
                    raise OSError("it has ended")
                answer: dict[str, Any] = json.loads(line)
                return answer
            except (OSError, ValueError) as error:
                raise _core.DeviceError(f"process 0 of the program does not answer: {error}") from None

    def set(self, key: str, value: str) -> None:
        """Store a text. Raises ValueError for a key that has one."""
        answer = self.ask(0.0, key=key, value=value)
        if "error" in answer:
            raise ValueError(answer["error"])

    def get(self, key: str, timeout: float) -> str | None:
        """The text of a key, when it has one; None after the timeout."""
        found: str | None = self.ask(timeout, key=key, timeout=timeout)["value"]
        return found

    def close(self) -> None:
        """Close the connection."""
        self.file.close()
        self.socket.close()


def connect(host: str, port: int, timeout: float) -> socket.socket:
    """A connection to process 0, which may start later than this one. Raises DeviceError after the timeout."""
    end = time.monotonic() + timeout
    while True:
        try:
            return socket.create_connection((host, port), max(0.1, end - time.monotonic()))
        except OSError as error:
            if time.monotonic() > end:
                raise _core.DeviceError(f"process 0 does not listen on {host}:{port} within {timeout:g} s: {error}") from None
            time.sleep(0.05)


class Processes(NamedTuple):
    """The processes of the program, as this one knows them."""

    total: int
    number: int  # of this one
    values: Values | Client
    server: Server | None


ALONE = Processes(1, 0, Values(), None)
_processes = [ALONE]  # the ones in force


def processes() -> Processes:
    """The processes of the program."""
    return _processes[0]


def wait_for(key: str, timeout: float, what: str) -> str:
    """A text that another member stores. Raises DeviceError with `what` is missing after the timeout."""
    value = processes().values.get(key, timeout)
    if value is None:
        raise _core.DeviceError(f"{what} did not come within {timeout:g} s")
    return value


def initialize(coordinator_address: str, num_processes: int, process_id: int, timeout: float = 60.0) -> None:
    """Let processes work together: each calls this once, before it makes a `Mesh`.

    Parameters
    ----------
    coordinator_address : str
        "host:port". Process 0 listens there. It must be an address that only the program's own machines reach.
    num_processes, process_id : int
        How many there are, and the number of this one, from 0.
    timeout : float
        Seconds to wait for the others.

    Raises
    ------
    ValueError
        For numbers that do not fit, a number that another process has, or if this process is initialized already.
    DeviceError
        If another process does not come within the timeout; its number is in the message.
    OSError
        If process 0 cannot listen at the address.

    Examples
    --------
    >>> cinductor.distributed.initialize("127.0.0.1:29400", num_processes=2, process_id=rank)
    >>> mesh = cinductor.distributed.Mesh((2,), ("x",), devices=f"cuda:{rank}")
    """
    host, colon, port = str(coordinator_address).rpartition(":")
    if not colon or not port.isdecimal():
        raise ValueError(f"coordinator_address is {coordinator_address!r}; wanted: 'host:port'")
    if not 0 <= process_id < num_processes:
        raise ValueError(f"process_id is {process_id} of {num_processes} processes; wanted: 0 to {num_processes - 1}")
    if processes() is not ALONE:
        raise ValueError("initialize was called before; shutdown() comes first")
    server, values = None, Values()
    if process_id == 0:
        server = Server(values, host, int(port))
    found = Processes(num_processes, process_id, values if server else Client(host, int(port), timeout), server)
    _processes[0] = found
    try:
        found.values.set(f"process {process_id}", "")
        for number in range(num_processes):
            wait_for(f"process {number}", timeout, f"process {number} of {num_processes}")
    except BaseException:
        shutdown()
        raise


def shutdown() -> None:
    """Undo `initialize`: this process is alone again. Meshes of several processes must be closed before."""
    found, _processes[0] = processes(), ALONE
    if found.server:
        found.server.close()
    if isinstance(found.values, Client):
        found.values.close()
