"""LiteLLM against a real local server: every call ends as a reply or an error, in time."""

import json
import re
import resource
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from actors.providers.exchange import Exchange
from actors.providers.litellm_provider import LiteLLMProvider, listed_price
from actors.providers.port import Completion, ProviderError
from decisions.settling import NOTHING
from events.campaign import Model
from events.vocabulary import Usage
from tests.support.asking import question
from tests.support.completions import Server, Step, body, reply, serving

pytestmark = pytest.mark.filterwarnings("ignore")  # LiteLLM's and its dependencies' own

KEY = "sk-very-secret"
SLACK_S = 1.5
"""Beyond the deadline: a busy machine may wake the waiting thread late."""
GOOD = reply("the answer", prompt_tokens=200, completion_tokens=50)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as listening:
        yield listening


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
    server: Server, *script: Step, timeout_s: float = 20.0
) -> tuple[LiteLLMProvider, list[float]]:
    server.script = list(script)
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        time.sleep(seconds / 10)

    return LiteLLMProvider(model(server.url, timeout_s), KEY, sleep), pauses


def failure(server: Server, *script: Step, timeout_s: float) -> ProviderError:
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
    asked, _ = provider(server, Step(200, GOOD))
    completion = asked.complete(question("the prompt"))

    assert completion == Completion("the answer", Usage(tokens_in=200, tokens_out=50), 1)
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
    server.script = [Step(200, GOOD)]

    asked = LiteLLMProvider(model(server.url, 20.0), None)
    assert asked.complete(question("hi")).text == "the answer"
    assert server.requests[0]["authorization"] == "Bearer none"


def test_a_rate_limit_and_a_server_error_are_waited_out(server: Server) -> None:
    """The waits grow, are spread by jitter, and are the same for the same prompt."""
    script = (Step(429, b"{}"), Step(503, b"{}"), Step(500, b"{}"), Step(200, GOOD))
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
    error = failure(server, Step(status, refusal), timeout_s=20.0)

    assert error.n_calls == len(server.requests) == 1
    assert "bad key ***" in error.reason
    assert error.usage == NOTHING


def test_server_errors_for_ever_end_at_the_deadline(server: Server) -> None:
    """LiteLLM's own retries are off: every request is counted."""
    error = failure(server, Step(500, b'{"error": {"message": "down"}}'), timeout_s=3.0)

    assert error.n_calls == len(server.requests) > 1
    assert "down" in error.reason


def test_a_hanging_server_ends_at_the_deadline(server: Server) -> None:
    """The call may have been paid for."""
    assert failure(server, Step(manner="hang"), timeout_s=1.0).usage is None


def test_a_dripping_server_ends_at_the_deadline(server: Server) -> None:
    """Every byte renews a read time limit, but not the deadline."""
    assert failure(server, Step(200, GOOD, "drip"), timeout_s=1.0).usage is None


@pytest.mark.parametrize("data", [body([], {}), *map(reply, (None, "", "  \n"))])
def test_a_reply_without_text_is_a_failure(server: Server, data: bytes) -> None:
    """There is nothing to parse, and asking again is the director's decision."""
    error = failure(server, Step(200, data), timeout_s=20.0)

    assert error.reason == "litellm:openai/test-model: empty reply"
    assert error.n_calls == 1


ENDED: dict[str, Any] = {"prompt_tokens": 20, "completion_tokens": 77}


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (Step(200, b'{"id": "x", "ob'), ""),
        (Step(200, b"<html>", headers={"content-type": "text/html"}), "<html>"),
        (Step(200, b"[1]"), ""),
        (Step(200, b'"text"'), ""),
        (Step(200, b"null"), ""),
        (Step(200, b"{}"), ""),
        (Step(200, b'{"error": {"message": "no credit", "code": 402}}'), "402|no credit|Error"),
        (Step(200, GOOD.replace(b"the", b"t\xff\xfee")), "utf-8"),
        (Step(200, GOOD, "cut"), ""),
        (Step(200, b" " * 65536, "flood"), "more than 4096 KB of reply"),
        (Step(200, GOOD, headers={"content-encoding": "gzip"}), "compressed"),
        (Step(200, reply("x" * (1 << 20) + "x", **ENDED)), "more than 1024 KB"),
        (Step(200, reply("<plan>half a", "length", **ENDED)), "cut off after 77 tokens"),
        (Step(200, reply(["a", {"b": 1}])), ""),
        (Step(200, body([{"index": 0}], {})), ""),
        (Step(200, reply("fine", prompt_tokens="many", completion_tokens=[])), ""),
    ],
    ids=[
        "half JSON", "HTML", "list", "text", "null", "nothing", "error", "not UTF-8", "cut",
        "flood", "compressed", "too long", "truncated", "no string", "no message", "no counts",
    ],
)  # fmt: skip
def test_what_is_no_reply_costs_one_failure(server: Server, step: Step, said: str) -> None:
    """It is not asked for again, for it may have been paid for; so what was reserved counts."""
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    error = failure(server, step, timeout_s=20.0)
    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb

    assert re.search(said, error.reason)
    assert error.n_calls == len(server.requests) == 1
    is_counted = b"half a" in step.data
    assert error.usage == (Usage(tokens_in=20, tokens_out=77) if is_counted else None)
    assert len(error.reason) <= 1000
    assert grown_kb < 64 << 10
    assert server.n_sent < 16 << 20


@pytest.mark.parametrize(
    "counts",
    [
        {},
        {"prompt_tokens": -5, "completion_tokens": 7},
        {"prompt_tokens": 5, "completion_tokens": 10**30},
        {"prompt_tokens": 0, "completion_tokens": 0},
        {"prompt_tokens": 9, "completion_tokens": 50},
        {"prompt_tokens": 9000, "completion_tokens": 50},
        {"prompt_tokens": 200, "completion_tokens": 9000},
    ],
)
def test_counts_that_cannot_be_true_are_unknown(server: Server, counts: dict[str, Any]) -> None:
    """The reply is good all the same; a server that counts too little would spend without end."""
    asked, _ = provider(server, Step(200, reply("the answer", **counts)))
    completion = asked.complete(question("hi" * 500))

    assert (completion.text, completion.usage) == ("the answer", None)


def test_a_wrong_content_type_alone_does_no_harm(server: Server) -> None:
    """What counts is what the body says."""
    asked, _ = provider(server, Step(200, GOOD, headers={"content-type": "text/plain"}))

    assert asked.complete(question("hi")).text == "the answer"


def test_a_maker_that_does_not_speak_openai_is_watched_too(server: Server) -> None:
    """LiteLLM has another client for these."""
    other = model(server.url, 20.0).model_copy(update={"model": "anthropic/test-model"})
    server.script = [Step(200, b" " * 65536, "flood")]
    with pytest.raises(ProviderError, match="more than 4096 KB of reply") as caught:
        LiteLLMProvider(other, KEY).complete(question("hi"))

    assert (caught.value.n_calls, caught.value.usage) == (1, None)
    assert server.n_sent < 16 << 20


def test_a_server_that_names_a_pause_gets_it(server: Server) -> None:
    """And a random part on top, so that not all who wait come back at once."""
    asked, pauses = provider(
        server, Step(429, b"{}", headers={"retry-after": "3"}), Step(200, GOOD)
    )
    asked.complete(question("hi"))

    assert 3.5 <= pauses[0] <= 4.0


DATE = "Tue, 01 Dec 2026 12:00:00 GMT"


@pytest.mark.parametrize(
    ("said", "date", "seconds"),
    [
        ("2.5", DATE, 2.5),
        ("Tue, 01 Dec 2026 12:00:04 GMT", DATE, 4.0),
        ("Tue, 01 Dec 2026 11:00:04 GMT", DATE, 0.0),
        ("Tue, 01 Dec 2026 12:00:04 GMT", "yesterday", 0.0),
        ("Tue, 01 Dec 2026 12:00:04 -0000", DATE, 0.0),
        ("-7", DATE, 0.0),
        ("soon", DATE, 0.0),
        ("1e9", DATE, 0.0),
    ],
)
def test_a_pause_is_in_seconds_or_until_a_date(said: str, date: str, seconds: float) -> None:
    """By the server's own clock; what cannot be read is no pause."""
    headers = httpx.Headers([(b"retry-after", said.encode()), (b"date", date.encode())])

    assert Exchange(0.0, headers=headers).retry_after_s == seconds


def test_a_pause_beyond_the_deadline_is_not_waited(server: Server) -> None:
    """The turn fails at once, and costs nothing: the server has refused it."""
    started = time.monotonic()
    error = failure(server, Step(429, b"{}", headers={"retry-after": "900"}), timeout_s=20.0)

    assert time.monotonic() - started < 5.0
    assert (error.n_calls, error.usage) == (1, NOTHING)


def test_a_call_that_litellm_itself_refuses_costs_nothing() -> None:
    """No request was made: the model's name has no maker."""
    nameless = model("http://127.0.0.1:9/v1", 20.0).model_copy(update={"model": "nobody/x"})
    with pytest.raises(ProviderError) as caught:
        LiteLLMProvider(nameless, KEY).complete(question("hi"))

    assert (caught.value.n_calls, caught.value.usage) == (1, NOTHING)


def test_a_lost_connection_may_have_been_paid_for(server: Server) -> None:
    """The request was read, and no status came."""
    error = failure(server, Step(manner="leave"), timeout_s=20.0)

    assert (error.n_calls, len(server.requests), error.usage) == (1, 1, None)


def test_a_left_behind_call_ends_soon(server: Server) -> None:
    """Dripping servers would collect threads over days otherwise."""
    failure(server, Step(200, GOOD, "drip"), timeout_s=0.5)
    deadline = time.monotonic() + 5.0
    while time.monotonic() < deadline and _calls():
        time.sleep(0.05)

    assert _calls() == []


def _calls() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name == "litellm-call"]


def test_a_listed_price_is_litellms_own() -> None:
    """Of its local table, without network; a model that it lacks has none."""
    listed = listed_price("gpt-4o")

    assert listed is not None
    assert listed.source.startswith("litellm 1")
    assert 0 < listed.usd_per_million_in < listed.usd_per_million_out < 1000
    assert listed_price("openai/no-such-model") is None


def test_a_server_that_is_not_there_ends_as_a_failure_in_time() -> None:
    """A refused connection may come back within the deadline, so that it is tried again."""
    asked = LiteLLMProvider(model("http://127.0.0.1:9/v1", 2.0), KEY)
    started = time.monotonic()
    with pytest.raises(ProviderError) as caught:
        asked.complete(question("hi"))

    assert time.monotonic() - started < 2.0 + SLACK_S
    assert caught.value.n_calls > 1
