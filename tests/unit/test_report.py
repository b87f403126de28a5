"""The report of a run: complete, self-contained, and safe to open."""

import itertools
import re
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from pathlib import Path

import pytest

from actors.crew import crew
from actors.director import Director
from actors.local_mailbox import LocalMailbox
from actors.opening import first_event
from events.blobs import Blobs
from events.campaign import Campaign
from events.log import EventLog
from events.projections.knowledge import Hits
from events.projections.state import replay
from events.segments import segment_path
from events.vocabulary import CandidateAccepted, CandidateExamined
from scripts.report import main
from scripts.reporting import charts, wording
from scripts.reporting.accounts import device_use, fates, mishaps
from scripts.reporting.beliefs import beliefs
from scripts.reporting.branches import accepts, rows
from scripts.reporting.diffs import diff
from scripts.reporting.history import Run, jobs, load
from scripts.reporting.page import render
from scripts.reporting.results import headline, results
from targets.protocol import Ask, Sources
from tests.support.fake_target import FakeCatalogue, FakeTarget
from tests.support.runs import SECRET, begin, campaign

EVIL = '</style></svg><script>alert("x")</script><img src=x onerror=alert(1)>\u202e'
DRAWN = {"path", "line", "circle", "rect"}


class EvilCatalogue(FakeCatalogue):
    """Proposes like the fake one, with markup in its hypotheses and a comment in its sources."""

    def _proposal(self, move: str, body: str) -> str:
        source = body.replace("time 0.5", f"# {EVIL}\ntime 0.5")
        return f"<hypothesis>{EVIL}</hypothesis><move>{move}</move>{source}"


class BlindTarget(FakeTarget):
    """Its known-wrong canary is right, so the first control of every run fails."""

    def sources(self, kernel: str) -> Sources:
        """Swap the canary for a correct source."""
        own = super().sources(kernel)
        return Sources(own.baseline, own.baseline + "knob 1\n", own.canary_slow, own.bounds)


class DullCatalogue(FakeCatalogue):
    """Knows one design, which is wrong."""

    def reply(self, ask: Ask) -> str:
        """Propose it once."""
        if ask.task in ("design", "step") and ask.tried:
            return "<nothing>that was all</nothing>"
        if ask.task == "step":
            return "<nothing>no steps</nothing>"
        return super().reply(ask)


class Page(HTMLParser):
    """What a browser would find in a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        self.tags.append((tag, dict(attrs)))
        if tag not in {"meta", "br"} | DRAWN:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Check that it closes the tag opened last."""
        if tag in {"meta", "br"} or (tag in DRAWN and (not self.open or self.open[-1] != tag)):
            return
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Collect the text."""
        self.text += data


def clocked(folder: Path, settings: Campaign, target: FakeTarget) -> None:
    """Run a campaign on clocks that move: three seconds per record, two per device job."""
    ticks, seconds = itertools.count(1_800_000_000), itertools.count()
    clock: Callable[[], int] = lambda: next(ticks) * 3 * 10**9  # noqa: E731
    with EventLog.open(folder, clock) as log:
        actors = crew(target, folder / "lease", {}, clock=lambda: 2.0 * next(seconds))
        boss = Director(log, Blobs(folder), LocalMailbox(actors))
        start = first_event(settings, target, Blobs(folder), secret_seed=SECRET, versions={})
        boss.start(start)
        boss.run()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run."""
    path = tmp_path_factory.mktemp("runs") / "finished"
    clocked(path, campaign(), FakeTarget())
    return path


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    """The same, read back."""
    return load(folder)


def cut(run: Run, n: int) -> Run:
    """The run as it was after its first ``n`` records."""
    return Run(run.records[:n], replay(run.records[:n]), run.head)


def page_of(run: Run, folder: Path) -> str:
    return render(run, Blobs(folder))


def test_the_command_writes_one_page_and_says_so(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line on stdout, one file, exit status 0."""
    out = tmp_path / "page.html"

    assert main([str(folder), "--out", str(out)]) == 0

    told = capsys.readouterr()
    assert told.err == ""
    assert told.out.count("\n") == 1
    assert str(out) in told.out
    assert out.read_text("utf-8").startswith("<!DOCTYPE html>")


def test_a_run_that_is_not_there_is_a_line_on_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A user's mistake is no traceback."""
    assert main([str(tmp_path / "nowhere")]) == 2

    told = capsys.readouterr()
    assert told.out == ""
    assert "no such log" in told.err
    assert told.err.count("\n") == 1


def test_a_damaged_log_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A page about a damaged log would be believed."""
    begin(tmp_path / "run", campaign(max_candidates=1))
    log = segment_path(tmp_path / "run", 0)
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(data)

    assert main([str(tmp_path / "run")]) == 1

    assert "restore it from a copy" in capsys.readouterr().err
    assert not (tmp_path / "run" / "report.html").exists()


def test_the_page_is_well_formed_and_loads_nothing(run: Run, folder: Path) -> None:
    """It is read offline, weeks later, and must never depend on, or tell, another machine."""
    page = Page(page_of(run, folder))

    assert page.open == []
    assert not {tag for tag, _ in page.tags} & {"script", "link", "iframe", "object", "img"}
    targets = [v for _, attrs in page.tags for k, v in attrs.items() if k in ("href", "src")]
    assert targets
    assert all(target is not None and target.startswith("#") for target in targets)
    assert not [k for _, attrs in page.tags for k in attrs if k.startswith("on")]


def test_every_link_leads_somewhere(run: Run, folder: Path) -> None:
    """A link to evidence that is not there is worse than none."""
    tags = Page(page_of(run, folder)).tags
    ids = [attrs["id"] for _, attrs in tags if "id" in attrs]

    assert len(ids) == len(set(ids))
    assert {a["href"] for t, a in tags if t == "a"} <= {f"#{name}" for name in ids}


def test_tables_and_charts_can_be_read_aloud(run: Run, folder: Path) -> None:
    """Header cells have a scope, charts a title, headings no gap."""
    page = page_of(run, folder)
    tags = Page(page).tags

    assert all("scope" in attrs for tag, attrs in tags if tag == "th")
    assert all(a.get("aria-label") or a.get("aria-hidden") for t, a in tags if t == "svg")
    levels = [int(tag[1]) for tag, _ in tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


def test_texts_of_agents_stay_texts(tmp_path: Path) -> None:
    """Hypotheses and sources are written by agents: none of it may become markup."""
    target = FakeTarget()
    target.catalogue = EvilCatalogue()
    clocked(tmp_path, campaign(max_candidates=6), target)

    text = page_of(load(tmp_path), tmp_path)

    page = Page(text)
    assert page.open == []
    assert not {"script", "img"} & {tag for tag, _ in page.tags}
    assert EVIL.removesuffix("\u202e") in page.text
    assert "\u202e" not in text
    assert "\\u202e" in text


def test_the_result_is_the_fresh_final_pairs(run: Run, folder: Path) -> None:
    """The claim by accepts is shown beside it, and never as the result."""
    found = results(run)
    head = headline(run, found)

    assert run.state.finished is not None
    assert head.geomean == run.state.finished.geomean
    assert head.is_fresh
    assert [r.final.n_pairs for r in found if r.final] == [6, 6]
    assert all(r.claim != r.final.speedup for r in found if r.final)
    page = page_of(run, folder)
    assert page.index("from fresh final pairs") < page.index("Claim by accepts")


def test_a_claim_that_the_final_pairs_leave_out_is_pointed_at(run: Run, folder: Path) -> None:
    """Errors of the accepts multiply, so a reader must not quote their product."""
    found = results(run)
    outside = [r.kernel for r in found if r.final and not r.final.low <= r.claim <= r.final.high]

    text = Page(page_of(run, folder)).text

    assert [r.kernel for r in found if r.disagrees] == outside
    assert all(f"{kernel}: claim" in text for kernel in outside)
    assert ("Quote the final pairs" in text) == bool(outside)


def test_the_run_can_be_read_at_any_point(run: Run, folder: Path) -> None:
    """A run that is going on, or was killed, has a page too, whatever it has got to."""
    for n in range(1, len(run.records), 23):
        text = page_of(cut(run, n), folder)

        assert Page(text).open == []
        assert "running or killed" in text
        assert "not yet confirmed" in text


def test_a_failed_control_leaves_no_result(tmp_path: Path) -> None:
    """The harness cannot be trusted, so no figure is offered."""
    clocked(tmp_path, campaign(), BlindTarget())
    run = load(tmp_path)

    assert headline(run, results(run)).geomean is None
    page = Page(page_of(run, tmp_path))
    assert page.open == []
    assert "no result" in page.text
    assert "canary wrong, alpha: FAILED" in page.text


def test_a_run_without_accepts_says_so(tmp_path: Path) -> None:
    """Every best version is its baseline, and its speed-up is 1 by definition."""
    target = FakeTarget()
    target.catalogue = DullCatalogue()
    clocked(tmp_path, campaign(), target)
    run = load(tmp_path)

    assert [r.final for r in results(run)] == [None, None]
    page = Page(page_of(run, tmp_path))
    assert page.open == []
    assert "Nothing was accepted" in page.text


def test_the_capital_shown_is_the_capital_decided_on(run: Run, folder: Path) -> None:
    """It is computed again from the pairs; another figure than the record's would be a defect."""
    found = accepts(run, Blobs(folder), rows(run))
    recorded = [r.event for r in run.records if isinstance(r.event, CandidateAccepted)]

    assert [a.row.node.candidate for a in found] == [e.candidate for e in recorded]
    assert [a.trial.readings[-1].capital for a in found] == [e.capital for e in recorded]
    assert [len(a.trial.readings) for a in found] == [e.n_pairs for e in recorded]


def test_device_seconds_add_up(run: Run) -> None:
    """By purpose and kernel they sum to what the budget was charged."""
    use = device_use(run, jobs(run.records))

    assert use.device_s > 0
    assert sum(use.totals) == pytest.approx(use.device_s)
    assert sum(sum(values) for _, values, _ in use.table) == pytest.approx(use.device_s)


def test_every_candidate_has_one_fate(run: Run) -> None:
    """The fates of the search's candidates add up to those proposed or rebuilt."""
    counts = fates(rows(run))

    n_nodes = sum(node.is_search for node in run.state.tree.nodes.values())
    assert sum(sum(c.values()) for c in counts.values()) == n_nodes
    assert counts["alpha"]["refused: correctness"] >= 1
    assert counts["alpha"]["accepted"] == len(run.state.tree.branches["alpha"].accepts)


def test_every_candidate_is_in_the_tree_under_its_parent(run: Run) -> None:
    """Depth first: what comes between a candidate and its parent is deeper than the parent."""
    for branch in rows(run).values():
        places = {row.node.candidate: (i, row.depth) for i, row in enumerate(branch)}
        for i, row in enumerate(branch):
            if row.node.parent is not None:
                start, depth = places[row.node.parent]
                assert row.depth == depth + 1
                assert all(r.depth > depth for r in branch[start + 1 : i])
    assert sum(len(b) for b in rows(run).values()) == len(run.state.tree.nodes)


def test_the_evidence_of_screening_is_shown(run: Run, folder: Path) -> None:
    """A reader may doubt a refusal: the figure of every fixture is there."""
    text = render(run, Blobs(folder))
    examined = [r.event for r in run.records if isinstance(r.event, CandidateExamined)]
    n_builds = sum(stage.stage == "build" for e in examined for stage in e.stages)

    assert n_builds > len(run.kernels)
    assert text.count("<strong>build</strong>") == n_builds
    assert all(f.fixture in text for e in examined for f in e.fixtures)


def test_what_each_rule_refused_is_shown(run: Run, folder: Path) -> None:
    """With what was built all the same, and how much of that was refused wrongly."""
    rules = [belief for belief in beliefs(run) if belief.rule]
    told = render(run, Blobs(folder)).partition('aria-label="Refusals by rule"')[2]
    table = Page(told.partition("<tbody>")[2].partition("</tbody>")[0]).text

    assert rules
    for belief in rules:
        hits = belief.hits or Hits()
        row = next(line for line in table.splitlines() if line.startswith(f"f{belief.number} "))
        kernel = belief.fact.kernel or "all"
        counts = f"{hits.n_refused}{hits.n_built_anyway}{hits.n_false}"
        assert row == f"f{belief.number} {belief.rule}{kernel}{belief.state}{counts}"


def test_failed_jobs_are_mishaps_and_an_empty_catalogue_is_none(run: Run) -> None:
    """Having nothing to propose is an answer."""
    found = mishaps(run)

    assert any("segmentation fault" in m.detail for m in found)
    assert not any("nothing" in m.detail for m in found)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 1.0001], [0.5, 2.0], [1e-6, 500.0]])
def test_an_axis_spans_its_values_with_several_ticks(values: Sequence[float]) -> None:
    """Flat, narrow and wide data alike must give a readable axis."""
    for make in (charts.linear_axis, charts.log_axis):
        axis = make("", values, str)

        assert axis.low < axis.high
        assert all(axis.low <= value <= axis.high for value in values)
        assert 3 <= len(axis.ticks) <= 12
        assert all(0 <= axis.at(value) <= 1 for value, _ in axis.ticks)


def test_an_axis_without_device_time_is_still_an_axis() -> None:
    """A run may be read before its first device job."""
    assert charts.running_axis("", 0.0, str).at(0.0) == 0.0


def test_a_diff_shows_what_changed() -> None:
    """Added and removed lines carry their sign; equal sources have no lines."""
    assert diff("a\nb\n", "a\nb\n") == ()
    assert [(line.kind, line.text) for line in diff("a\nb\n", "a\nc\n")][1:] == [
        ("same", " a"),
        ("removed", "-b"),
        ("added", "+c"),
    ]


def test_figures_are_worded_with_their_unit() -> None:
    """People read these; a wrong unit is a wrong claim."""
    assert wording.seconds(0.0002255) == "225.5 µs"
    assert wording.seconds(0.0) == "0 s"
    assert wording.duration(90061.0) == "1 d 1 h"
    assert wording.duration(0.05) == "0.0500 s"
    assert wording.factor(1.00412) == "1.004×"  # noqa: RUF001
    assert wording.effect(-1000.0) == "−∞"  # noqa: RUF001
    assert wording.records((5, 3, 4, 9)) == "#3–5, #9"  # noqa: RUF001
    assert wording.percent(1.0, 0.0) == "–"  # noqa: RUF001
