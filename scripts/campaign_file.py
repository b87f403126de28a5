"""Read a campaign file, and say in one line what is wrong with it."""

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from events.campaign import Acceptance, Campaign
from scripts.files import FileError, read_file
from sim.rates import Rates
from targets.protocol import Target, TargetError
from targets.registry import load_target, target_names

MAX_CAMPAIGN_BYTES = 1 << 20
MAX_SHOWN = 80
"""Characters of a wrong value that are shown."""


class CampaignError(Exception):
    """A campaign that cannot be run as it is written.

    Attributes:
        path: the campaign file or run folder.
        reason: what is wrong, with the dotted key, and what would be right.
    """

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(path, reason)
        self.path, self.reason = path, reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


def load(path: Path) -> Campaign:
    """Read a campaign and check it, its target, preset and kernels included.

    Raises:
        CampaignError: the file cannot be read, or something in it is wrong.
    """
    table = _table(path)
    try:
        # By way of JSON, where strict means no text for numbers but lists for tuples.
        campaign = Campaign.model_validate_json(json.dumps(table, default=str), strict=True)
    except ValidationError as e:
        raise CampaignError(path, _worst(e.errors())) from None
    _check_target(path, campaign)
    return campaign


def load_policy(path: Path) -> Acceptance:
    """Read the `[acceptance]` table of a file that may hold nothing else.

    Raises:
        CampaignError: the file cannot be read, has no such table, or something in it is wrong.
    """
    table = _table(path)
    if "acceptance" not in table:
        raise CampaignError(path, "no [acceptance] table")
    try:
        wanted = json.dumps(table["acceptance"], default=str)
        return Acceptance.model_validate_json(wanted, strict=True)
    except ValidationError as e:
        errors = [{**error, "loc": ("acceptance", *error["loc"])} for error in e.errors()]
        raise CampaignError(path, _worst(errors)) from None


def load_rates(path: Path) -> Rates:
    """Read a file of fault rates.

    Raises:
        CampaignError: the file cannot be read, or something in it is wrong.
    """
    try:
        return Rates.model_validate_json(json.dumps(_table(path), default=str), strict=True)
    except ValidationError as e:
        raise CampaignError(path, _worst(e.errors(), Rates)) from None


def _table(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_file(path, MAX_CAMPAIGN_BYTES).decode())
    except FileError as e:
        if path.exists():
            raise CampaignError(path, e.reason) from None
        names = [p.name for p in path.parent.glob("*.toml")]
        raise CampaignError(path, f"no such file{_hint(path.name, names)}") from None
    except UnicodeDecodeError as e:
        raise CampaignError(path, f"not UTF-8 text (byte {e.start})") from None
    except ValueError as e:  # not only of TOML: an integer of too many digits
        raise CampaignError(path, f"not valid TOML: {e}") from None
    except RecursionError:
        raise CampaignError(path, "not valid TOML: nested too deeply") from None


# ---- keys and values -----------------------------------------------------------------------


def _worst(errors: Sequence[Mapping[str, Any]], model: type[BaseModel] = Campaign) -> str:
    """Word one error: an unknown key first, since it may be why another one is missing."""
    first = min(errors, key=lambda e: e["type"] != "extra_forbidden")
    words = [str(part) for part in first["loc"]]
    key = _short(".".join(words))
    match first["type"]:
        case "extra_forbidden":
            return f"unknown key '{key}'{_nearest_key(words, model)}"
        case "missing":
            return f"missing key '{key}'"
        case "value_error":
            said = first["msg"].removeprefix("Value error, ")
            return f"'{key}': {said}" if key else said
        case _:
            given = json.dumps(first["input"], ensure_ascii=False)
            return f"'{key}' is {_short(given)}; {_wanted(first['msg'])}"


def _short(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


def _wanted(message: str) -> str:
    """Turn pydantic's sentence into the end of one of ours."""
    _, _, rest = message.removesuffix(" after validation, not 0").partition(" should ")
    return f"it should {rest.replace('an object', 'a table')}" if rest else message


def _nearest_key(words: Sequence[str], model: type[BaseModel]) -> str:
    """The key that was meant: one of the same table, else the same name in another table."""
    table, name = ".".join(words[:-1]), words[-1]
    own = words[1] if len(words) > 2 else "NAME"
    keys = {key: key.rpartition(".") for key in _keys(model, own)}
    here = [last for before, _, last in keys.values() if before == table]
    if near := get_close_matches(name, here, n=1):
        return f"; did you mean '{near[0]}'?"
    elsewhere = {last: key for key, (_, _, last) in reversed(keys.items())}
    if near := get_close_matches(name, elsewhere, n=1, cutoff=0.8):
        return f"; did you mean '{elsewhere[near[0]]}'?"
    return f"; there are: {', '.join(here)}"


def _keys(model: type[BaseModel], own: str, prefix: str = "") -> Iterator[str]:
    """Every dotted key of a settings model, tables included; those with names of its own as one."""
    for name, info in model.model_fields.items():
        yield prefix + name
        has_own = get_origin(info.annotation) is dict
        inner = f"{prefix}{name}.{own}." if has_own else f"{prefix}{name}."
        kinds = (info.annotation, *get_args(info.annotation))
        for kind in kinds:
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from _keys(kind, own, inner)


# ---- what the target knows -----------------------------------------------------------------


def _check_target(path: Path, campaign: Campaign) -> None:
    target = _target(path, campaign)
    known = target.kernels()
    for kernel in campaign.kernels:
        if kernel not in known:
            hint = _hint(kernel, known) or f"; there are: {', '.join(known)}"
            reason = f"'kernels': target {campaign.target!r} has no kernel {kernel!r}{hint}"
            raise CampaignError(path, reason)
    if len(set(campaign.kernels)) < len(campaign.kernels):
        raise CampaignError(path, "'kernels' names a kernel twice")


def _target(path: Path, campaign: Campaign) -> Target:
    if campaign.target not in target_names():
        names = target_names()
        hint = _hint(campaign.target, names) or f"; there are: {', '.join(names)}"
        raise CampaignError(path, f"'target': no target {campaign.target!r}{hint}")
    try:
        return load_target(campaign.target, campaign.preset)
    except TargetError as e:
        near = _hint(campaign.preset, _presets(campaign.target))
        raise CampaignError(path, f"'preset': {e}{near}") from None


def _presets(target: str) -> tuple[str, ...]:
    """Presets of a target, as far as its default one is there to ask."""
    try:
        return load_target(target, Campaign.model_fields["preset"].default).presets()
    except TargetError:
        return ()


def _hint(word: str, known: Sequence[str]) -> str:
    near = get_close_matches(word, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
