"""What the models of a campaign need from this machine."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from actors.providers.litellm_provider import listed_price
from actors.providers.prices import UnknownPriceError, prices
from events.campaign import Campaign, Model
from events.log import holds_log
from events.vocabulary import Price
from scripts.runs import UsageError


def check(campaign: Campaign, environ: Mapping[str, str]) -> None:
    """Find what would make every turn fail before it has cost hours of them.

    Raises:
        UsageError: a model cannot be asked.
    """
    for name, model in campaign.answering().items():
        if (missing := lacking(model, environ)) is not None:
            raise UsageError(f"'models.{name}': {missing}")


def lacking(model: Model, environ: Mapping[str, str]) -> str | None:
    """What is not there for a model to be asked, or None."""
    match model.provider:
        case "litellm" if model.api_key_env not in (None, *environ):
            return f"the environment variable {model.api_key_env!r} ('api_key_env') is not set"
        case "command" if shutil.which(model.command[0]) is None:
            return f"'command' names no program: {model.command[0]!r}"
        case "manual" if not _can_be_folder(Path(model.folder or "")):
            return f"'folder' is no folder, and none can be made: {model.folder!r}"
        case "recorded" if model.run is not None and not holds_log(Path(model.run)):
            return f"'run' is no run folder: {model.run!r}"
        case _:
            return None


def priced(campaign: Campaign) -> dict[str, Price]:
    """The prices that a run records as it starts.

    Raises:
        UsageError: a cost could not be counted.
    """
    try:
        return prices(campaign, listed_price)
    except UnknownPriceError as e:
        raise UsageError(str(e)) from None


def _can_be_folder(path: Path) -> bool:
    """Whether it is there, or all that is there of the way to it are folders."""
    there = next(each for each in (path, *path.absolute().parents) if each.exists())
    return there.is_dir()
