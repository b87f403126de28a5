"""The export of a run: each kernel's best source, and a page of evidence beside it."""

import hashlib
import re
from collections.abc import Callable, Mapping

from events.blobs import Blobs
from events.projections.tree import Node
from events.vocabulary import Sha
from scripts.plain import one_line
from scripts.readings import stand_in
from scripts.reporting import wording
from scripts.reporting.history import Run
from scripts.reporting.results import Headline, Result, headline, results
from scripts.reporting.trials import trial

SUMS = "SHA256SUMS"
SUMS_TITLE = "# kernelwright export: check with sha256sum -c SHA256SUMS\n"


Compiled = Callable[[str, bytes], bytes]
"""Makes the device's program of a kernel's source."""
_EXTENSIONS = {"cpu": "c", "rngd": "py", "rngd opt": "rs"}
"""By target, or by target and the first word of the preset where that is another language."""


def exported(run: Run, blobs: Blobs, compiled: Compiled | None = None) -> dict[str, bytes]:
    """Return the files of the export by name, ``SHA256SUMS`` last.

    Args:
        run: what is exported.
        blobs: of the run.
        compiled: for the device's programs as well.

    Raises:
        LogError: a source is missing or damaged.
    """
    found = results(run)
    names = file_names(run)
    sources = {r.kernel: blobs.get(_source(run, r)) for r in found}
    made = {names[kernel]: source for kernel, source in sources.items()}
    if compiled is not None:
        made |= {f"{names[k]}.bin": compiled(k, source) for k, source in sources.items()}
    made["README.md"] = _readme(run, found, names).encode()
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in made.items())
    return {**made, SUMS: (SUMS_TITLE + sums).encode()}


def file_names(run: Run) -> dict[str, str]:
    """Name the file of each kernel: a plain name, whatever the kernel is called."""
    campaign = run.state.begun.campaign
    language = f"{campaign.target} {campaign.preset.partition('-')[0]}"
    extension = _EXTENSIONS.get(language) or _EXTENSIONS.get(campaign.target, "txt")
    plain = {kernel: re.sub(r"[^A-Za-z0-9_-]+", "-", kernel) for kernel in run.kernels}
    seen = list(plain.values())
    return {
        kernel: f"{name if seen.count(name) == 1 else f'{name}-{i}'}.{extension}"
        for i, (kernel, name) in enumerate(plain.items(), 1)
    }


def _source(run: Run, result: Result) -> Sha:
    """The best version's source; the target's baseline before anything passed screening."""
    return result.best.source if result.best else run.state.begun.sources[result.kernel].baseline


def _readme(run: Run, found: tuple[Result, ...], names: Mapping[str, str]) -> str:
    parts = [_opening(run, headline(run, found))]
    parts += [_kernel(run, result, names[result.kernel]) for result in found]
    return "\n".join([*parts, _toolchain(run), _audit(run)])


def _opening(run: Run, head: Headline) -> str:
    campaign = run.state.begun.campaign
    match head.standing:
        case "failed":
            said = f"**No result: {_plain(head.reason)}. Do not use these figures.**"
        case "finished":
            figure = wording.factor(head.geomean)
            said = (
                f"**{figure}** over the baselines: geometric mean over the kernels of the median "
                "of fresh final pairs; a kernel without an accepted candidate counts as 1."
            )
        case _:
            figure = wording.factor(head.geomean)
            said = (
                f"**{figure}** claimed by the accepts, not yet confirmed by fresh final pairs: "
                f"the run is not finished ({_plain(head.reason)})."
            )
    return (
        f"# Best kernels of {campaign.name}\n\n"
        f"Target {_plain(campaign.target)}, preset {_plain(campaign.preset)}, "
        f"begun {wording.moment(run.records[0].time_ns)}, "
        f"last record {wording.moment(run.records[-1].time_ns)}.\n\n{said}\n"
        + (f"\nReadings: {_plain(device)}.\n" if (device := stand_in(run.state.toolchain)) else "")
    )


def _kernel(run: Run, result: Result, name: str) -> str:
    rows = [
        ("Source", f"`{name}`, SHA-256 `{_source(run, result)}`"),
        ("Version", _version(result)),
        ("Speed-up, fresh final pairs", _final(result)),
        ("Speed-up claimed by the accepts", wording.factor(result.claim)),
        ("Time / bound", _over_bound(result)),
    ]
    table = "".join(f"| {label} | {text} |\n" for label, text in rows)
    return f"## {_plain(result.kernel)}\n\n| What | Value |\n| --- | --- |\n{table}" + _accepts(
        run, result
    )


def _version(result: Result) -> str:
    if result.best is None:
        return f"**the target's baseline**, which has not passed screening: {_plain(result.note)}"
    if result.is_baseline:
        return f"**the baseline (c{result.best.candidate})**: no candidate was accepted"
    node = result.best
    return f"c{node.candidate}, a {node.form} by {_plain(node.author)}, record #{node.proposed}"


def _final(result: Result) -> str:
    final = result.final
    if final is None:
        return f"none: {_plain(result.note)}"
    low, high = wording.factor(final.low), wording.factor(final.high)
    return (
        f"{wording.factor(final.speedup)}, 95 % interval {low} to {high}, "
        f"{wording.count(final.n_pairs, 'pair')}, records {wording.records(final.seqs)}"
    )


def _over_bound(result: Result) -> str:
    if result.time_over_bound is None:
        return "not measured on this version"
    return (
        f"{wording.ratio(result.time_over_bound)} (bound {wording.seconds(result.bound_s)}, "
        f"load-only variant {_plain(result.bound_name)}, record #{result.bound_seq})"
    )


def _accepts(run: Run, result: Result) -> str:
    if not result.accepts:
        return ""
    nodes = [run.state.tree.nodes[candidate] for candidate in result.accepts]
    head = (
        "\nThe accepts, in order. An effect is 100 ln(candidate / best before it), in log-percent; "
        "negative is faster.\n\n"
        "| Candidate | On | Effect | 95 % at the stop | Pairs | Capital | Pairs in | Accept |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- |\n"
    )
    return head + "".join(_accept(run, node) for node in nodes)


def _accept(run: Run, node: Node) -> str:
    evidence = trial(run, node)
    measured = wording.records(evidence.seqs) if evidence else wording.NONE
    return (
        f"| c{node.candidate} | c{node.opponent} | {wording.effect(node.effect)} "
        f"| {wording.effect(node.low)} to {wording.effect(node.high)} | {node.n_pairs} "
        f"| {wording.amount(node.capital)} | {measured} | #{node.decided} |\n"
    )


def _toolchain(run: Run) -> str:
    rows = {**run.state.toolchain, **run.state.begun.versions}
    table = "".join(f"| {_plain(k)} | {_plain(v)} |\n" for k, v in rows.items())
    return f"## Toolchain\n\nTimes hold under this one.\n\n| What | Value |\n| --- | --- |\n{table}"


def _audit(run: Run) -> str:
    return (
        "## How to check this\n\n"
        f"- `sha256sum -c {SUMS}` shows that no file here was changed; a source's SHA-256 is its "
        "name in the run's record.\n"
        "- `kernelwright audit RUN` derives every decision of the run again from its log, and "
        "`kernelwright report RUN` shows every pair.\n"
        f"- The log had {wording.count(len(run.records), 'record')} and the chain head "
        f"`{run.head}`; `#` numbers are its records.\n"
    )


def _plain(text: str) -> str:
    """Write a text of the run so that Markdown shows it as it is, on one line."""
    return re.sub(r"([\\`*_{}\[\]<>()#|!&~])", r"\\\1", one_line(text))
