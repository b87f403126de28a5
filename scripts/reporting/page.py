"""The report as one HTML page."""

from importlib.resources import files
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from events.blobs import Blobs
from scripts.operated import ordered
from scripts.plain import visible
from scripts.readings import stand_in
from scripts.reporting import (
    accounts,
    beliefs,
    branches,
    charts,
    figures,
    history,
    renewal,
    results,
    waiting,
    wording,
)
from scripts.reporting.history import Run
from scripts.reporting.truth import MISSED, Truth
from scripts.statics import agreement

_FILTERS = (
    wording.seconds,
    wording.duration,
    wording.factor,
    wording.ratio,
    wording.amount,
    wording.effect,
    wording.speedup,
    wording.moment,
    wording.records,
    wording.count,
    wording.percent,
)


MARK = '<meta name="generator" content="kernelwright report">'
"""By this a page of ours is known."""


def render(run: Run, blobs: Blobs, truth: Truth | None = None) -> str:
    """Return the page; every text of the run is escaped, and it loads nothing.

    Args:
        run: what it is about.
        blobs: of the run.
        truth: of the run; the page has a section on it where it is known.

    Raises:
        LogError: a source that it shows is missing or damaged.
    """
    page = _environment().get_template("report.html")
    sheet = Markup(_data("report.css"))  # our own
    return page.render(style=sheet, mark=Markup(MARK), **_told(run, blobs, truth))


def _told(run: Run, blobs: Blobs, truth: Truth | None) -> dict[str, Any]:
    """Everything that the template names."""
    done = history.jobs(run.records)
    found = branches.rows(run)
    kernels = results.results(run)
    return {
        "run": run,
        "start": run.state.begun,
        "device": stand_in(run.state.toolchain),
        "head": results.headline(run, kernels),
        "results": kernels,
        "speedup_chart": figures.speedups(run, done),
        "bound_chart": figures.bounds(run, done),
        "probe_chart": figures.probes(run, done),
        "times": figures.times,
        "capital_chart": figures.capital,
        "effect_chart": figures.effects,
        "trees": found,
        "accepts": branches.accepts(run, blobs, found),
        "use": accounts.device_use(run, done),
        "wait": waiting.waiting(run),
        "purposes": accounts.PURPOSES,
        "budgets": accounts.budgets(run),
        "fates": accounts.fates(found),
        "fate_names": accounts.FATES,
        "beliefs": beliefs.by_topic(run),
        "fact_states": beliefs.STATES,
        "documents": beliefs.documents(run),
        "changes": renewal.changes(run),
        "controls": accounts.controls(run),
        "agreements": {
            kernel: told
            for kernel, branch in run.state.tree.branches.items()
            if (told := agreement(branch))
        },
        "sentinels": accounts.sentinels(run, done),
        "orders": ordered(run.records),
        "mishaps": accounts.mishaps(run),
        "truth": truth,
        "truth_chart": figures.claims(truth, run.kernels) if truth else None,
        "missed": MISSED,
        "colour": {k: i % charts.N_COLOURS for i, k in enumerate(run.kernels)},
        "dashes": charts.DASHES,
    }


def _environment() -> Environment:
    environment = Environment(
        loader=DictLoader({"report.html": _data("report.html.jinja")}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
    )
    environment.filters.update({show.__name__: show for show in _FILTERS})
    return environment


def _visible(value: object) -> object:
    """Show hidden and reordering characters of the run's texts; leave our own markup alone."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(value)
    return value


def _data(name: str) -> str:
    return files("scripts.reporting").joinpath(name).read_text("utf-8")
