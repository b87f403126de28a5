"""Answers by a model behind LiteLLM; the one module that imports it."""

import functools
import os
import random
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from actors.providers.port import Completion, ProviderError
from events.campaign import Model
from targets.protocol import Ask

_FIRST_DELAY_S = 1.0
_MAX_DELAY_S = 30.0
_MAX_REASON = 1000
_TIMED_OUT, _RATE_LIMITED, _SERVER_ERROR = 408, 429, 500
"""HTTP statuses, as LiteLLM's exceptions carry them; a lost connection counts as 500."""


class LiteLLMProvider:
    """One model, one key; repeats rate-limited and failed calls until one deadline.

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

    def complete(self, prompt: str, ask: Ask) -> Completion:
        """Return the model's reply.

        The deadline covers all attempts and holds against a server that hangs or drips: the call
        runs in a thread that is left behind. Importing LiteLLM is not part of it.

        Raises:
            ProviderError: refused, unusable, or no reply before the deadline.
        """
        completion = _litellm().completion
        deadline = time.monotonic() + self._model.timeout_s
        jitter = random.Random(prompt)
        n_calls = 0
        while True:
            n_calls += 1
            result = self._attempt(completion, prompt, deadline, n_calls)
            if not isinstance(result, BaseException):
                return self._read(result, n_calls)
            delay = jitter.uniform(0.5, 1.0) * min(
                _FIRST_DELAY_S * 2 ** (n_calls - 1), _MAX_DELAY_S
            )
            if not _worth_repeating(result) or time.monotonic() + delay > deadline:
                raise ProviderError(
                    self._explain(result), n_calls, abandoned=_status(result) == _TIMED_OUT
                ) from result
            self._sleep(delay)

    def _attempt(
        self, completion: Callable[..., Any], prompt: str, deadline: float, n_calls: int
    ) -> Any:
        """Return LiteLLM's response, or the exception that it raised."""
        left = max(deadline - time.monotonic(), 0.001)
        call = functools.partial(
            completion,
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
            raise ProviderError(reason, n_calls, abandoned=True) from e

    def _key(self) -> str | None:
        # The OpenAI client refuses to start without any key, even for a local server.
        return "none" if self._api_key is None and self._model.base_url else self._api_key

    def _read(self, response: Any, n_calls: int) -> Completion:
        text = response.choices[0].message.content if response.choices else None
        if not text or not text.strip():
            raise ProviderError(f"{self.name}: empty reply", n_calls)
        usage = getattr(response, "usage", None)
        tokens_in = int(getattr(usage, "prompt_tokens", 0) or 0)
        tokens_out = int(getattr(usage, "completion_tokens", 0) or 0)
        cost_usd = 1e-6 * (
            tokens_in * self._model.usd_per_million_in
            + tokens_out * self._model.usd_per_million_out
        )
        return Completion(text, tokens_in, tokens_out, cost_usd, n_calls)

    def _explain(self, error: BaseException) -> str:
        reason = f"{self.name}: {type(error).__name__}: {error}"
        if self._api_key:
            reason = reason.replace(self._api_key, "***")
        return reason[:_MAX_REASON]


def _worth_repeating(error: BaseException) -> bool:
    status = _status(error)
    return status in {_TIMED_OUT, _RATE_LIMITED} or status >= _SERVER_ERROR


def _status(error: BaseException) -> int:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else 0


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

    litellm.telemetry = False
    litellm.suppress_debug_info = True
    return litellm
