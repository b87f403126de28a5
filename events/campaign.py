"""The configuration of a run: it is part of the run's first event, so it is part of the record."""

from collections.abc import Mapping
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

RoleName = Literal["architect", "implementer", "optimizer", "analyst", "reviewer"]
ROLES: tuple[RoleName, ...] = get_args(RoleName)
ProviderName = Literal["catalogue", "litellm", "command", "manual", "recorded"]
ModelName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")]
DEFAULT: ModelName = "default"
"""The model of a role that names none."""


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("a NUL character names no file")
    return text


Argument = Annotated[str, AfterValidator(_without_nul)]
"""A path, or a word of a command line."""


class Settings(BaseModel):
    """Base of every configuration table: immutable, and an unknown key is an error."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, revalidate_instances="always"
    )


class Search(Settings):
    """How far and how wide the search goes."""

    max_candidates: int = Field(default=150, ge=1)
    """Candidates over all kernels, baselines and canaries not counted."""
    max_designs: int = Field(default=16, ge=1)
    """Whole-kernel designs per kernel."""
    in_flight: int = Field(default=4, ge=1)
    """Candidates per kernel between proposal and verdict."""
    repairs: int = Field(default=1, ge=0)
    """Times that an author is asked again for one piece of work that cannot be used."""


class Screening(Settings):
    """The cheap checks before any device time."""

    workers: int = Field(default=2, ge=1)
    """Size of the screening pool."""
    fixtures: int = Field(default=4, ge=2)
    """Fixtures per check; the last one is drawn from the run's secret seed."""


class Acceptance(Settings):
    """The sequential randomization test and its price stop."""

    alpha: float = Field(default=0.002, gt=0, lt=0.5)
    """False-accept probability per candidate."""
    pairs_per_job: int = Field(default=1, ge=1, le=3)
    """Pairs of one candidate in one device job (one process). More than one is for a device of
    which it is known that an arm is not off by an amount of its own in every job."""
    noise_pairs: int = Field(default=12, ge=4)
    """A/A pairs per kernel before the first comparison."""
    final_pairs: int = Field(default=30, ge=6)
    """Fresh pairs of the best version against the baseline when the run ends."""
    min_run_s: float = Field(default=0.005, gt=0)
    """A run repeats launches until it lasts about this long, so that short kernels are readable."""
    max_pairs: int = Field(default=200, ge=9)
    """A candidate without a verdict after so many pairs is parked for good."""
    start_price: float = Field(default=0.003, gt=0)
    """Price of one measurement in log-percent at the start of the run."""


class KnowledgeSettings(Settings):
    """What the run learns about its target besides the search."""

    rules: bool = True
    """Whether failed builds become legality rules that refuse sources before they are built."""
    facts: tuple[Argument, ...] = ()
    """Files with the facts of other runs, relative to the campaign file: claims to be checked."""
    documents: tuple[Argument, ...] = ()
    """Files and folders, relative to the campaign file, that an analyst reads after the target's
    own documents; kept whole with the run."""
    probe_share: float = Field(default=0.02, ge=0, le=1)
    """Share of the device time that microbenchmarks may take."""


class Budget(Settings):
    """What the run may spend; each limit stops it cleanly. None means no limit."""

    wall_s: float | None = Field(default=None, gt=0)
    device_s: float | None = Field(default=None, gt=0)
    model_calls: int | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)
    cost_usd: float | None = Field(default=None, ge=0)


class Model(Settings):
    """Someone who answers prompts, and how to ask."""

    provider: ProviderName = "catalogue"
    model: str | None = None
    """LiteLLM model string."""
    base_url: str | None = None
    api_key_env: str | None = None
    """Name of the environment variable that holds the key; the key itself is never recorded."""
    command: tuple[Argument, ...] = ()
    """Command line of an agent: prompt on stdin, reply on stdout."""
    folder: Argument | None = None
    """``manual``: where prompts are written and replies looked for."""
    run: Argument | None = None
    """``recorded``: the run folder whose replies are given again."""
    timeout_s: float = Field(default=300.0, gt=0)
    """One deadline over all attempts of one call."""
    at_once: int = Field(default=4, ge=1)
    """Turns that may wait for it at a time, over all roles."""
    max_tokens: int = Field(default=8192, ge=1)
    """Most tokens of one reply; with 24,000 for the prompt it is what a call reserves."""
    usd_per_million_in: float | None = Field(default=None, ge=0)
    usd_per_million_out: float | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _complete(self) -> "Model":
        key = NEEDS.get(self.provider)
        if key is not None and not getattr(self, key):
            raise ValueError(f"provider {self.provider!r} needs {key!r}")
        if (self.usd_per_million_in is None) != (self.usd_per_million_out is None):
            raise ValueError("give 'usd_per_million_in' and 'usd_per_million_out' both, or neither")
        return self

    @property
    def is_free(self) -> bool:
        """Whether a turn calls nobody: nothing is reserved, and no limit holds it back."""
        return self.provider in ("catalogue", "recorded")


NEEDS: Mapping[ProviderName, str] = {
    "litellm": "model",
    "command": "command",
    "manual": "folder",
    "recorded": "run",
}
"""The key without which a provider cannot be asked."""


class Roles(Settings):
    """Who answers for each role: names of models. Of several, one is drawn for each turn."""

    architect: tuple[ModelName, ...] = (DEFAULT,)
    implementer: tuple[ModelName, ...] = (DEFAULT,)
    optimizer: tuple[ModelName, ...] = (DEFAULT,)
    analyst: tuple[ModelName, ...] = (DEFAULT,)
    reviewer: tuple[ModelName, ...] = (DEFAULT,)

    def of(self, role: RoleName) -> tuple[ModelName, ...]:
        """The models that answer for ``role``."""
        names: tuple[ModelName, ...] = getattr(self, role)
        return names


class Campaign(Settings):
    """One campaign file."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")
    target: str
    preset: str = "full"
    kernels: tuple[str, ...] = Field(min_length=1)
    objective: Literal["geomean"] = "geomean"
    """Geometric mean over the kernels of baseline time over best time."""
    seed: int = Field(default=1, ge=0, lt=2**63)
    """Seeds the catalogue; the secret seed of coins and held-out fixtures is drawn at the start."""
    search: Search = Search()
    screening: Screening = Screening()
    acceptance: Acceptance = Acceptance()
    knowledge: KnowledgeSettings = KnowledgeSettings()
    budget: Budget = Budget()
    models: dict[str, Model] = Field(default={}, validate_default=True)
    """By a name of the campaign's own; there is always a `DEFAULT`, the catalogue if not given."""
    roles: Roles = Roles()

    @field_validator("models")
    @classmethod
    def _with_default(cls, models: dict[str, Model]) -> dict[str, Model]:
        return {DEFAULT: Model(), **models}

    @model_validator(mode="after")
    def _every_model_has_a_role(self) -> "Campaign":
        named = {name: role for role in ROLES for name in self.roles.of(role)}
        for role in ROLES:
            names = self.roles.of(role)
            if not names or len(set(names)) < len(names):
                raise ValueError(f"'roles.{role}' needs names of models, each once")
        for name, role in named.items():
            if name not in self.models:
                there = ", ".join(self.models)
                raise ValueError(f"'roles.{role}' names no model: {name!r}; there are: {there}")
        for name in self.models:
            if name not in named and name != DEFAULT:
                raise ValueError(f"'models.{name}' answers for no role; name it under [roles]")
        return self

    def answering(self) -> dict[str, Model]:
        """The models that answer for any role."""
        named = dict.fromkeys(name for role in ROLES for name in self.roles.of(role))
        return {name: self.models[name] for name in named}
