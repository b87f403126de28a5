"""What passes between a client and a model's server, watched: when it must end, how much it may be.

One transport lies under every client that LiteLLM makes. It knows the call that a request belongs
to by its thread, so that what LiteLLM's exceptions leave out is known: whether a reply was begun.
"""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import cast

import httpx

from decisions.tags import MAX_REPLY_BYTES

MAX_BODY_BYTES = 4 * MAX_REPLY_BYTES
"""Of one response: the longest reply, what a model thought before it, and JSON around both."""
_UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)
_REFUSED = 400


@dataclass
class Exchange:
    """One call: its requests and what came back."""

    deadline: float
    """On the monotonic clock."""
    is_sent: bool = True
    """Whether a request may have reached the server; a client that is not watched sends unseen."""
    status: int | None = None
    """HTTP status of the last response."""
    headers: httpx.Headers = field(default_factory=httpx.Headers)
    problem: str = ""
    """Why reading its body was given up."""

    @property
    def is_refused(self) -> bool:
        """Whether the server cannot have begun a reply: nothing was paid for."""
        return not self.is_sent or (self.status is not None and self.status >= _REFUSED)

    @property
    def retry_after_s(self) -> float:
        """Seconds that the server asks to wait; 0 if it does not."""
        said = self.headers.get("retry-after", "")
        try:
            seconds = float(said) if said.replace(".", "", 1).isdigit() else self._until(said)
        except (ValueError, TypeError, OverflowError):
            return 0.0
        return max(seconds, 0.0)

    def _until(self, date: str) -> float:
        """Seconds to a date, by the server's own clock."""
        now = parsedate_to_datetime(self.headers.get("date", ""))
        return (parsedate_to_datetime(date) - now).total_seconds()

    def give_up(self, problem: str) -> None:
        """End the reading of a body."""
        self.problem = problem
        raise httpx.ReadError(problem)


class WatchedTransport(httpx.BaseTransport):
    """Sends requests by a client of its own, which knows the environment's proxies."""

    def __init__(self) -> None:
        self._client = httpx.Client()
        self._local = threading.local()

    def watch(self, exchange: Exchange) -> None:
        """Note what this thread sends from here on in ``exchange``."""
        self._local.exchange = exchange

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request; its response ends with the deadline or the size limit."""
        exchange: Exchange = self._local.exchange
        request.headers["accept-encoding"] = "identity"  # a short body may unpack to a long one
        exchange.status, exchange.headers = None, httpx.Headers()
        try:
            response = self._client.send(request, stream=True)
        except _UNSENT:
            exchange.is_sent = False
            raise
        exchange.is_sent = True
        exchange.status, exchange.headers = response.status_code, response.headers
        return httpx.Response(
            response.status_code,
            headers=response.headers,
            stream=_Body(cast("httpx.SyncByteStream", response.stream), exchange, time.monotonic),
            extensions=response.extensions,
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


class _Body(httpx.SyncByteStream):
    """A response's bytes, as far as they may be."""

    def __init__(
        self, stream: httpx.SyncByteStream, exchange: Exchange, clock: Callable[[], float]
    ) -> None:
        self._stream, self._exchange, self._clock = stream, exchange, clock

    def __iter__(self) -> Iterator[bytes]:
        """Pass the bytes on."""
        if self._exchange.headers.get("content-encoding", "identity") != "identity":
            self._exchange.give_up("a compressed reply, which nobody asked for")
        n_bytes = 0
        for chunk in self._stream:
            n_bytes += len(chunk)
            if n_bytes > MAX_BODY_BYTES:
                self._exchange.give_up(f"more than {MAX_BODY_BYTES >> 10} KB of reply")
            if self._clock() > self._exchange.deadline:
                self._exchange.give_up("the reply did not end in time")
            yield chunk

    def close(self) -> None:
        """Close the connection; the rest is not read."""
        self._stream.close()
