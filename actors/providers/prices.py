"""What the models of a campaign take: part of the run's first event."""

from collections.abc import Callable

from events.campaign import Campaign, Model
from events.vocabulary import Price

Listed = Callable[[str], Price | None]
"""Looks a LiteLLM model string up in a table of prices."""


class UnknownPriceError(Exception):
    """A model would spend money that nobody could count.

    Attributes:
        model: its name in the campaign.
        called: who would be called.
    """

    def __init__(self, model: str, called: str) -> None:
        super().__init__(model, called)
        self.model, self.called = model, called

    def __str__(self) -> str:
        return (
            f"no price is known for 'models.{self.model}' ({self.called}); "
            "give its 'usd_per_million_in' and 'usd_per_million_out', 0 if it costs nothing"
        )


def prices(campaign: Campaign, listed: Listed) -> dict[str, Price]:
    """Find the price of every model that calls somebody.

    The campaign's own price wins; else a LiteLLM model at its maker's has that of the table. What
    a command or a person takes may stay unknown as long as no budget limits the cost.

    Raises:
        UnknownPriceError: a cost could not be counted.
    """
    must_know = campaign.budget.cost_usd is not None
    return {
        name: _price(name, model, listed, must_know=must_know)
        for name, model in campaign.answering().items()
        if not model.is_free
    }


def _price(name: str, model: Model, listed: Listed, *, must_know: bool) -> Price:
    usd_in, usd_out = model.usd_per_million_in, model.usd_per_million_out
    if usd_in is not None and usd_out is not None:
        return Price(usd_per_million_in=usd_in, usd_per_million_out=usd_out, source="campaign")
    if model.provider == "litellm":
        found = listed(model.model) if model.model and model.base_url is None else None
        if found is None:
            raise UnknownPriceError(name, model.model or "")
        return found
    if must_know:
        raise UnknownPriceError(name, model.provider)
    return Price(usd_per_million_in=0.0, usd_per_million_out=0.0, source="not given")
