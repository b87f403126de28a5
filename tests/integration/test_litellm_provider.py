"""LiteLLM against a real local server: every call ends as a reply or an error, in time."""

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from actors.providers.litellm_provider import LiteLLMProvider
from actors.providers.port import Completion, ProviderError
from decisions.settling import NOTHING
from events.campaign import Model
from events.vocabulary import Usage
from tests.support.asking import question

pytestmark = pytest.mark.filterwarnings("ignore")  # LiteLLM's and its dependencies' own

KEY = "sk-very-secret"
SLACK_S = 1.5
"""Beyond the deadline: a busy machine may wake the waiting thread late."""


def reply(content: str | None, **usage: int) -> bytes:
    choices = [{"index": 0, "message": {"role": "assistant", "content": content}}]
    return body(choices if content != "no choices" else [], usage)


def body(choices: list[dict[str, Any]], usage: dict[str, int]) -> bytes:
    whole = {"id": "1", "object": "chat.completion", "created": 1, "model": "m"}
    counts = {"usage": {**usage, "total_tokens": sum(usage.values())}} if usage else {}
    return json.dumps({**whole, "choices": choices, **counts}).encode()


GOOD = reply("the answer", prompt_tokens=2000, completion_tokens=500)


class Server(ThreadingHTTPServer):
    """Speaks chat completions: each request takes a step of the script, the last for ever."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script: list[tuple[int | str, bytes]] = []
        self.requests: list[dict[str, Any]] = []
        self.closing = threading.Event()


class Handler(BaseHTTPRequestHandler):
    """Plays one step of the server's script."""

    server: Server

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        """Answer, drip or hang."""
        sent = json.loads(self.rfile.read(int(self.headers["content-length"])))
        step = min(len(self.server.requests), len(self.server.script) - 1)
        self.server.requests.append({**sent, "authorization": self.headers["authorization"]})
        status, data = self.server.script[step]
        if status == "hang":
            self.server.closing.wait(30.0)
            return
        self.send_response(200 if status == "drip" else int(status))
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        pieces = [data] if status != "drip" else [data[i : i + 1] for i in range(len(data))]
        self._write(pieces, pause_s=0.1 if status == "drip" else 0.0)

    def _write(self, pieces: list[bytes], pause_s: float) -> None:
        try:
            for piece in pieces:
                self.wfile.write(piece)
                if self.server.closing.wait(pause_s):
                    return
        except OSError:  # the client has left
            return


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.closing.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module", autouse=True)
def _imported() -> None:
    """Import LiteLLM before any deadline is looked at; it takes seconds."""
    with pytest.raises(ProviderError):
        LiteLLMProvider(model("http://127.0.0.1:9", 0.01), KEY).complete(question("x"))


def model(base_url: str, timeout_s: float) -> Model:
    return Model(
        provider="litellm",
        model="openai/test-model",
        base_url=base_url,
        timeout_s=timeout_s,
        max_tokens=77,
        usd_per_million_in=3.0,
        usd_per_million_out=10.0,
    )


def provider(
    server: Server, *script: tuple[int | str, bytes], timeout_s: float = 20.0
) -> tuple[LiteLLMProvider, list[float]]:
    server.script = list(script)
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        time.sleep(seconds / 10)

    url = f"http://127.0.0.1:{server.server_port}/v1"
    return LiteLLMProvider(model(url, timeout_s), KEY, sleep), pauses


def failure(server: Server, *script: tuple[int | str, bytes], timeout_s: float) -> ProviderError:
    """The error of a call, which must come in time."""
    asked, _ = provider(server, *script, timeout_s=timeout_s)
    started = time.monotonic()
    with pytest.raises(ProviderError) as caught:
        asked.complete(question("hi"))
    assert time.monotonic() - started < timeout_s + SLACK_S
    assert KEY not in caught.value.reason
    return caught.value


def test_a_reply_comes_with_its_tokens(server: Server) -> None:
    """They are the server's own count."""
    asked, _ = provider(server, (200, GOOD))
    completion = asked.complete(question("the prompt"))

    assert completion == Completion("the answer", Usage(tokens_in=2000, tokens_out=500), 1)
    assert asked.name == "litellm:openai/test-model"
    assert server.requests == [
        {
            "model": "test-model",
            "messages": [{"role": "user", "content": "the prompt"}],
            "max_tokens": 77,
            "authorization": f"Bearer {KEY}",
        }
    ]


def test_a_local_server_needs_no_key(server: Server) -> None:
    """And the environment's keys do not reach it."""
    server.script = [(200, GOOD)]
    url = f"http://127.0.0.1:{server.server_port}/v1"

    assert LiteLLMProvider(model(url, 20.0), None).complete(question("hi")).text == "the answer"
    assert server.requests[0]["authorization"] == "Bearer none"


def test_a_rate_limit_and_a_server_error_are_waited_out(server: Server) -> None:
    """The waits grow, are spread by jitter, and are the same for the same prompt."""
    script = ((429, b"{}"), (503, b"{}"), (500, b"{}"), (200, GOOD))
    asked, pauses = provider(server, *script)
    completion = asked.complete(question("hi"))

    assert completion.text == "the answer"
    assert completion.n_calls == len(server.requests) == 4
    assert all(0.5 * 2**i <= pause <= 2**i for i, pause in enumerate(pauses))

    server.requests.clear()
    again, same = provider(server, *script)
    again.complete(question("hi"))
    assert same == pauses


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_a_refusal_is_not_repeated(server: Server, status: int) -> None:
    """Asking again would be refused again."""
    refusal = json.dumps({"error": {"message": f"bad key {KEY}"}}).encode()
    error = failure(server, (status, refusal), timeout_s=20.0)

    assert error.n_calls == len(server.requests) == 1
    assert "bad key ***" in error.reason
    assert error.usage == NOTHING


def test_server_errors_for_ever_end_at_the_deadline(server: Server) -> None:
    """LiteLLM's own retries are off: every request is counted."""
    error = failure(server, (500, b'{"error": {"message": "down"}}'), timeout_s=3.0)

    assert error.n_calls == len(server.requests) > 1
    assert "down" in error.reason


def test_a_hanging_server_ends_at_the_deadline(server: Server) -> None:
    """The call may have been paid for."""
    assert failure(server, ("hang", b""), timeout_s=1.0).usage is None


def test_a_dripping_server_ends_at_the_deadline(server: Server) -> None:
    """Every byte renews a read time limit, but not the deadline."""
    assert failure(server, ("drip", GOOD), timeout_s=1.0).usage is None


@pytest.mark.parametrize("content", ["no choices", None, "", "  \n"])
def test_a_reply_without_text_is_a_failure(server: Server, content: str | None) -> None:
    """There is nothing to parse, and asking again is the director's decision."""
    error = failure(server, (200, reply(content)), timeout_s=20.0)

    assert error.reason == "litellm:openai/test-model: empty reply"
    assert error.n_calls == 1


@pytest.mark.parametrize("data", [b'{"id": "x", "ob', b"<html>", b"[1]", b'"text"', b"null", b"{}"])
def test_broken_json_ends_as_a_failure_in_time(server: Server, data: bytes) -> None:
    """A proxy's error page with status 200 is not a reply."""
    assert failure(server, (200, data), timeout_s=2.0).reason.startswith("litellm:openai/")


def test_a_server_that_is_not_there_ends_as_a_failure_in_time() -> None:
    """A refused connection may come back within the deadline, so that it is tried again."""
    asked = LiteLLMProvider(model("http://127.0.0.1:9/v1", 2.0), KEY)
    started = time.monotonic()
    with pytest.raises(ProviderError) as caught:
        asked.complete(question("hi"))

    assert time.monotonic() - started < 2.0 + SLACK_S
    assert caught.value.n_calls > 1
