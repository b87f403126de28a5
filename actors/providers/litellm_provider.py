"""Answers by a model behind LiteLLM; the one module that imports it."""

import functools
import os
import random
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import Future
from importlib import metadata
from typing import Any

import httpx

from actors.providers.exchange import Exchange, WatchedTransport
from actors.providers.port import Completion, ProviderError, Question
from decisions.settling import NOTHING, believable
from decisions.tags import MAX_REPLY_BYTES
from events.campaign import Model
from events.vocabulary import Price, Usage

_FIRST_DELAY_S = 1.0
_MAX_DELAY_S = 30.0
_MAX_REASON = 1000
_REFUSED, _TIMED_OUT, _RATE_LIMITED, _SERVER_ERROR = 400, 408, 429, 500
"""HTTP statuses."""
_MAX_TOKENS = 2**53
"""A count above this is none."""


class LiteLLMProvider:
    """One model, one key; repeats calls that were refused for now until one deadline.

    A call after which a reply may have been begun is not repeated: it may have been paid for.

    Args:
        model: a `Model` whose provider is ``litellm``.
        api_key: the key's value; None for a server that wants none.
        sleep: waits between two attempts, in seconds.
    """

    def __init__(
        self, model: Model, api_key: str | None, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.name = f"litellm:{model.model}"
        self._model = model
        self._api_key = api_key
        self._sleep = sleep

    def complete(self, question: Question) -> Completion:
        """Return the model's reply.

        The deadline covers all attempts and holds against a server that hangs or drips: the call
        runs in a thread that is left behind. Importing LiteLLM is not part of it.

        Raises:
            ProviderError: refused, unusable, or no reply before the deadline.
        """
        completion = _litellm().completion
        deadline = time.monotonic() + self._model.timeout_s
        jitter = random.Random(question.prompt)
        n_calls = 0
        while True:
            n_calls += 1
            exchange = Exchange(deadline)
            result = self._attempt(completion, question.prompt, exchange, n_calls)
            if not isinstance(result, BaseException):
                return self._read(result, question.prompt, n_calls)
            if exchange.status is None and exchange.is_sent:
                exchange.status = _refusal(result)
            backoff = min(_FIRST_DELAY_S * 2 ** (n_calls - 1), _MAX_DELAY_S)
            delay = exchange.retry_after_s + backoff * jitter.uniform(0.5, 1.0)
            if not _worth_repeating(exchange) or time.monotonic() + delay > deadline:
                usage = NOTHING if exchange.is_refused else None
                raise ProviderError(self._explain(result, exchange), n_calls, usage) from result
            self._sleep(delay)

    def _attempt(
        self, completion: Callable[..., Any], prompt: str, exchange: Exchange, n_calls: int
    ) -> Any:
        """Return LiteLLM's response, or the exception that it raised."""
        left = max(exchange.deadline - time.monotonic(), 0.001)

        def call() -> Any:
            _transport().watch(exchange)
            return completion(
                model=self._model.model,
                messages=[{"role": "user", "content": prompt}],
                api_base=self._model.base_url,
                api_key=self._key(),
                max_tokens=self._model.max_tokens,
                timeout=left,
                max_retries=0,
                num_retries=0,
            )

        future = _in_thread(call)
        try:
            return future.exception(left) or future.result()
        except TimeoutError as e:
            reason = f"{self.name}: no reply within {self._model.timeout_s:g} s; raise 'timeout_s'"
            raise ProviderError(reason, n_calls, usage=None) from e

    def _key(self) -> str | None:
        # The OpenAI client refuses to start without any key, even for a local server.
        return "none" if self._api_key is None and self._model.base_url else self._api_key

    def _read(self, response: Any, prompt: str, n_calls: int) -> Completion:
        choice = response.choices[0] if response.choices else None
        content = getattr(getattr(choice, "message", None), "content", None)
        text = content if isinstance(content, str) else ""
        usage = self._usage(getattr(response, "usage", None), prompt, text)
        problem = None
        if choice is not None and choice.finish_reason == "length":
            problem = f"cut off after {self._model.max_tokens} tokens; raise 'max_tokens'"
        elif not text.strip():
            problem = "empty reply"
        elif len(text.encode("utf-8", "replace")) > MAX_REPLY_BYTES:
            problem = f"a reply of more than {MAX_REPLY_BYTES >> 10} KB"
        if problem is not None:
            raise ProviderError(f"{self.name}: {problem}", n_calls, usage)
        return Completion(text, usage, n_calls)

    def _usage(self, reported: Any, prompt: str, text: str) -> Usage | None:
        """What a response says that it took, if it says so in numbers that can be true."""
        counts = [getattr(reported, name, None) for name in ("prompt_tokens", "completion_tokens")]
        if not all(type(count) is int and 0 <= count <= _MAX_TOKENS for count in counts):
            return None
        tokens_in, tokens_out = counts
        usage = Usage(tokens_in=tokens_in, tokens_out=tokens_out)
        n_in, n_out = (len(each.encode("utf-8", "replace")) for each in (prompt, text))
        return usage if believable(usage, n_in, n_out, self._model.max_tokens) else None

    def _explain(self, error: BaseException, exchange: Exchange) -> str:
        problem = exchange.problem or f"{type(error).__name__}: {error}"
        reason = f"{self.name}: {problem}"
        if self._api_key:
            reason = reason.replace(self._api_key, "***")
        return reason[:_MAX_REASON]


def listed_price(model: str) -> Price | None:
    """What LiteLLM's own table says that a model takes; None if it says nothing."""
    litellm = _litellm()
    try:
        listed = litellm.get_model_info(model)
    except Exception:  # noqa: BLE001 - it has no type of its own for a model that it lacks
        return None
    taken = listed.get("input_cost_per_token"), listed.get("output_cost_per_token")
    if not all(isinstance(usd, int | float) for usd in taken):
        return None
    usd_in, usd_out = taken
    return Price(
        usd_per_million_in=usd_in * 1e6,
        usd_per_million_out=usd_out * 1e6,
        source=f"litellm {metadata.version('litellm')}",
    )


def _refusal(error: BaseException) -> int | None:
    """The status with which a call was refused, as far as LiteLLM's exceptions can tell.

    They have 408 and 500 for connections that were lost as well.
    """
    status = getattr(error, "status_code", None)
    is_refusal = isinstance(status, int) and _REFUSED <= status < _SERVER_ERROR
    return status if is_refusal and status != _TIMED_OUT else None


def _worth_repeating(exchange: Exchange) -> bool:
    """Whether a refused call may be taken later."""
    status = exchange.status
    is_later = status is None or status in (_TIMED_OUT, _RATE_LIMITED) or status >= _SERVER_ERROR
    return exchange.is_refused and is_later


def _in_thread(call: Callable[[], Any]) -> "Future[Any]":
    """Run ``call`` in a thread that nobody has to wait for, not even the interpreter's exit."""
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as e:  # noqa: BLE001 - whatever it raises is the waiting caller's
            future.set_exception(e)

    threading.Thread(target=run, daemon=True, name="litellm-call").start()
    return future


@functools.cache
def _litellm() -> Any:
    """Import LiteLLM, which costs seconds, without any network use of its own."""
    os.environ |= {  # noqa: TID251 - LiteLLM reads these, and only these, while it is imported
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_OFFLINE_MODE": "true",
        "LITELLM_MODE": "PRODUCTION",  # else it loads the working directory's .env
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import litellm

    # One under the OpenAI client, and one under LiteLLM's own for all other makers.
    litellm.client_session = httpx.Client(transport=_transport(), follow_redirects=True)
    litellm.sync_transport = _transport()
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    return litellm


@functools.cache
def _transport() -> WatchedTransport:
    return WatchedTransport()
