"""A model's server for tests: speaks chat completions, well or badly, as its script says."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

DRIP_S = 0.1


class Step(NamedTuple):
    """How one request is answered."""

    status: int = 200
    data: bytes = b""
    manner: str = "whole"
    """``whole``, ``drip`` (a byte at a time), ``hang`` (never), ``leave`` (never, and
    goes away), ``cut`` (ends half way), or ``flood`` (sent again and again, up to 100 MB)."""
    headers: Mapping[str, str] = {}


class Server(ThreadingHTTPServer):
    """Each request takes a step of the script, the last for ever."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script: list[Step] = []
        self.requests: list[dict[str, Any]] = []
        self.n_sent = 0
        """Bytes of bodies that were taken from it."""
        self.closing = threading.Event()

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        """Play one step of the server's script."""
        sent = json.loads(self.rfile.read(int(self.headers["content-length"])))
        number = min(len(self.server.requests), len(self.server.script) - 1)
        self.server.requests.append({**sent, "authorization": self.headers["authorization"]})
        status, data, manner, headers = self.server.script[number]
        if manner in ("hang", "leave"):
            self.close_connection = True
            self.server.closing.wait(30.0 if manner == "hang" else 0.0)
            return
        repeats = (100 << 20) // len(data) if manner == "flood" else 1
        self.send_response(status)
        about = {"content-type": "application/json", "content-length": str(len(data) * repeats)}
        for name, value in {**about, **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self._write(data, manner, repeats)

    def _write(self, data: bytes, manner: str, repeats: int) -> None:
        pieces = [data] * repeats
        if manner == "drip":
            pieces = [data[i : i + 1] for i in range(len(data))]
        if manner == "cut":
            pieces, self.close_connection = [data[: len(data) // 2]], True
        try:
            for piece in pieces:
                self.wfile.write(piece)
                self.server.n_sent += len(piece)
                if self.server.closing.wait(DRIP_S if manner == "drip" else 0.0):
                    return
        except OSError:  # the client has left
            return


@contextmanager
def serving() -> Iterator[Server]:
    """A server that listens."""
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()


def reply(content: object, finish: str = "stop", **usage: Any) -> bytes:
    """A chat completion with one choice."""
    message = {"role": "assistant", "content": content}
    return body([{"index": 0, "finish_reason": finish, "message": message}], usage)


def body(choices: list[dict[str, Any]], usage: Mapping[str, object]) -> bytes:
    """A chat completion."""
    whole = {"id": "1", "object": "chat.completion", "created": 1, "model": "m"}
    counts = {"usage": {**usage, "total_tokens": 1}} if usage else {}
    return json.dumps({**whole, "choices": choices, **counts}).encode()
