"""The choices that a whole kernel is put together from."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Final, Literal

Value = str | int

CHOICES: Final[Mapping[str, tuple[Value, ...]]] = {
    "multiply": ("engine", "pass", "blocks"),
    "tile": (0, 1280, 1024, 768, 512, 256, 128, 64),
    "unroll": (1, 2, 3, 4, 5, 8),
    "chains": ("apart", "fused"),
    "vectors": ("bf16", "f32"),
    "scales": ("inside", "after", "norm"),
    "last": (0, 2, 4, 8, 16, 32),
    "loads": ("implicit", "explicit"),
}
"""Values by choice, neighbours beside each other."""

MEANINGS: Final[Mapping[str, str]] = {
    "multiply": "how a matrix meets its vector: decoded for the dot product engine, in one pass of "
    "the vector engine, or block by block on the dot product engine",
    "tile": "rows of a matrix in one turn of a hardware loop, 0 for the whole matrix at once",
    "unroll": "turns of the loop that the compiler writes out",
    "chains": "vector operations that follow each other, each on its own or fused",
    "vectors": "number format of vectors between operations",
    "scales": "where row or tensor scales are applied: with the product, after it, or with the "
    "norm that follows",
    "last": "the last matrix's columns in two parts, the second this fraction of them; 0 for one",
    "loads": "vectors that several operations read: loaded by each, or once by hand",
}

_HEADER: Final = re.compile(r"^# Choices: (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Recipe:
    """One value of every choice; `MEANINGS` says what they mean."""

    multiply: Literal["engine", "pass", "blocks"] = "engine"
    tile: int = 0
    unroll: int = 1
    chains: Literal["apart", "fused"] = "apart"
    vectors: Literal["bf16", "f32"] = "bf16"
    scales: Literal["inside", "after", "norm"] = "after"
    last: int = 0
    loads: Literal["implicit", "explicit"] = "implicit"

    @property
    def words(self) -> str:
        """The choices as one line."""
        return " ".join(f"{name}={value}" for name, value in asdict(self).items())

    @property
    def header(self) -> str:
        """Comment lines at the top of a source, from which `recipe_in` reads them again."""
        return f"# Choices: {self.words}\n"

    def neighbours(self) -> Iterator[tuple[str, "Recipe"]]:
        """Yield every recipe with one other value, with the choice's name."""
        for name, values in CHOICES.items():
            for value in values:
                if value != getattr(self, name):
                    yield name, replace(self, **{name: value})  # type: ignore[arg-type]


def recipe_in(source: str) -> Recipe | None:
    """Read the choices that a source says it was put together from."""
    found = _HEADER.search(source)
    return recipe_of(found.group(1)) if found else None


def recipe_of(words: str) -> Recipe | None:
    """Read a recipe's words; None if one is unknown."""
    said = dict(word.split("=", 1) for word in words.split() if "=" in word)
    values = {
        name: value
        for name, known in CHOICES.items()
        for value in known
        if str(value) == said.get(name)
    }
    return Recipe(**values) if len(values) == len(CHOICES) else None  # type: ignore[arg-type]
