"""Answers from the target's own catalogue of moves: no model, no key, no cost."""

from actors.providers.port import Completion, Question
from decisions.settling import NOTHING
from targets.protocol import Catalogue


class CatalogueProvider:
    """Asks the catalogue instead of a model."""

    name = "catalogue"

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    def complete(self, question: Question) -> Completion:
        """Return the catalogue's reply; the prompt says the same in words."""
        return Completion(self._catalogue.reply(question.ask), NOTHING, n_calls=0)
