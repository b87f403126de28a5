"""Answers from the target's own catalogue of moves: no model, no key, no cost."""

from actors.providers.port import Completion
from targets.protocol import Ask, Catalogue


class CatalogueProvider:
    """Asks the catalogue instead of a model."""

    name = "catalogue"

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    def complete(self, prompt: str, ask: Ask) -> Completion:
        """Return the catalogue's reply to ``ask``; ``prompt`` says the same in words."""
        return Completion(
            self._catalogue.reply(ask), tokens_in=0, tokens_out=0, cost_usd=0.0, n_calls=0
        )
