"""What a turn may cost, and what it did cost."""

from events.campaign import Model
from events.vocabulary import Price, Spend, Usage

PROMPT_TOKENS = 24_000
"""What a prompt may take, for the reservation; the settlement has the provider's own count."""
NOTHING = Usage(tokens_in=0, tokens_out=0)
"""Of calls that were refused, or never made."""
FREE = Price(usd_per_million_in=0.0, usd_per_million_out=0.0, source="nobody is called")
MAX_BYTES_PER_TOKEN = 32
"""A count with more text in a token is not believed; of prose and programs it is 3 to 8."""
SPARE_TOKENS = 1000
"""What a server may add to a prompt of its own."""


def reservation(model: Model, price: Price) -> Spend:
    """The most that one turn is expected to cost."""
    if model.is_free:
        return Spend()
    most = Usage(tokens_in=PROMPT_TOKENS, tokens_out=model.max_tokens)
    return _amount(most, price, n_calls=1)


def settled(reserved: Spend, usage: Usage | None, price: Price, n_calls: int) -> Spend:
    """What a turn has cost: as its provider counts or, if nobody knows, all that was reserved."""
    if usage is None:
        return reserved.model_copy(update={"model_calls": n_calls})
    return _amount(usage, price, n_calls)


def believable(usage: Usage, prompt_bytes: int, reply_bytes: int, max_tokens: int) -> bool:
    """Whether a provider's count can be true of these texts.

    A token has a byte at least; tokens of a reply that nobody sees are below the limit as well.
    """
    least_in, least_out = (n / MAX_BYTES_PER_TOKEN for n in (prompt_bytes, reply_bytes))
    is_prompt = max(least_in, 1) <= usage.tokens_in <= prompt_bytes + SPARE_TOKENS
    return is_prompt and least_out <= usage.tokens_out <= max_tokens + SPARE_TOKENS


def _amount(usage: Usage, price: Price, n_calls: int) -> Spend:
    usd = usage.tokens_in * price.usd_per_million_in + usage.tokens_out * price.usd_per_million_out
    return Spend(model_calls=n_calls, tokens=usage.tokens_in + usage.tokens_out, cost_usd=usd / 1e6)
