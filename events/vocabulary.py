"""Everything that can happen in a run: the closed set of event kinds.

Five sorts, told apart by who writes them and what follows:

- *requests* (director) start work; each is sent to exactly one actor and has exactly one reply;
- *replies* (actors, or the mailbox for a lost one) carry raw evidence;
- *decisions* (director) follow from the state before them alone; ``audit`` re-derives each;
- *orders* (operator) are what people want of a run that goes on; nothing derives them;
- *marks* (director) frame the run: started, resumed, stopped, repaired, pruned.

Large values (sources, prompts, replies, diagnostics, raw samples) are blobs, named by `Sha`.
"""

from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from events.campaign import Campaign, ModelName, RoleName

Sha = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""SHA-256 of a blob's bytes, hex."""
CandidateId = int
"""Number of a candidate in the order of proposal, from 1; shown as ``c17``."""
Form = Literal["baseline", "canary_wrong", "canary_slow", "design", "step"]
Task = Literal["design", "implement", "analyse", "step", "review", "summarize"]
Stage = Literal["duplicate", "rule", "build", "correctness"]
BlobKind = Literal[
    "source", "prompt", "reply", "template", "plan", "artifact", "diagnostics", "samples",
    "profile", "passage", "torn_tail", "pruned_list",
]  # fmt: skip
"""What a blob is to the event that names it first."""
Purpose = Literal["noise", "canary", "test", "sentinel", "bound", "probe", "final"]
Resource = Literal["wall_s", "device_s", "model_calls", "tokens", "cost_usd"]
"""What a budget limits."""
Comparison = Literal[
    "above", "below", "other_than", "no_multiple_of", "no_divisor_of", "no_power_of_two"
]  # fmt: skip
"""What a number must be, to a limit, to break a rule; the last one needs no limit."""
Topic = Literal["bound", "noise", "rule", "document", "claim", "microbenchmark"]
"""What a fact is about; each topic has its own way of being checked. What a document says and what
an agent claims are both checked by a probe."""
FactState = Literal["proposed", "confirmed", "refuted", "stale"]
"""What is believed of a fact; stale: it was checked under another toolchain."""
Prediction = Literal["builds", "refused", "computes", "costs"]
"""What a probe is expected to do: build, be refused, be correct, take so many static cycles."""
OrderId = Annotated[str, Field(pattern=r"^[0-9]{20}-[0-9a-f]{8}$")]
"""Name of an order, drawn by who gave it: one that comes twice is obeyed once."""
Words = Annotated[str, Field(min_length=1, max_length=400)]
"""What a person says, short enough for a prompt."""


class Value(BaseModel):
    """Base of every recorded value: immutable, and an unknown field is an error.

    One that is handed over ready-made is validated again: a copy with changes never was.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, revalidate_instances="always"
    )


# ---- marks ---------------------------------------------------------------------------------


class RunStarted(Value):
    """The first record of every run."""

    kind: Literal["run_started"] = "run_started"
    campaign: Campaign
    secret_seed: str
    """Seed of coins and held-out fixtures, 64 hex digits; never shown to an agent."""
    versions: dict[str, str]
    rules: dict[str, int] = {}
    """Versions of the decision rules in force from here on, in the order they are asked."""
    toolchain: dict[str, str]
    """Fingerprint of the target: compiler, flags, processor."""
    sources: dict[str, "KernelSources"]
    """Per kernel, the target's own sources that the run starts from."""
    cards: dict[str, "KernelCard"]
    microbenchmarks: dict[str, "MicrobenchmarkSources"] = {}
    """The target's own, by name, in the order in which they are run."""
    documents: tuple["DocumentText", ...] = ()
    """What there is to read of the target, in order."""
    prices: dict[str, "Price"] = {}
    """What the models take, by their names in the campaign; one that calls nobody has none."""
    shares_host: bool = False
    """The target's device is the machine itself: screening and measuring take turns."""
    offers: tuple["FactProposed", ...] = ()
    """What other runs have found: claims, to be checked here."""


class Price(Value):
    """What a model takes, in US dollars, and who says so."""

    usd_per_million_in: float = Field(ge=0)
    usd_per_million_out: float = Field(ge=0)
    source: str
    """``campaign``, ``not given``, or ``litellm`` with its version."""


class KernelSources(Value):
    """The target's own sources for one kernel."""

    baseline: Sha
    baseline_normalized: Sha
    canary_wrong: Sha
    canary_slow: Sha
    bounds: dict[str, Sha]
    """Load-only variants by name; the fastest one is the bound."""


class MicrobenchmarkSources(Value):
    """A family of programs whose times together say what some things cost."""

    kernel: str
    """Whose buffers they bind."""
    points: dict[str, "PointSource"]


class PointSource(Value):
    """A program of a microbenchmark."""

    source: Sha
    counts: dict[str, float]
    """How often a launch does each thing, or how much of it."""


class DocumentText(Value):
    """A document, kept whole with the run."""

    title: str
    passages: tuple[Sha, ...]
    """Its parts in order, each short enough for a prompt."""


class KernelCard(Value):
    """What a kernel is."""

    task: str
    """For agents: the mathematics, the formats, the buffers."""
    weight_bytes: int
    """Bytes of weights and scales that every launch must move."""


class RunResumed(Value):
    """A new process took the run over; work without a reply is issued again."""

    kind: Literal["run_resumed"] = "run_resumed"
    versions: dict[str, str]
    rules: dict[str, int] = {}
    """As in `RunStarted`."""
    toolchain: dict[str, str]


class RunInterrupted(Value):
    """The operator stopped the run at a safe point."""

    kind: Literal["run_interrupted"] = "run_interrupted"
    reason: str
    order: OrderId | None = None
    """None if the process itself was told, by a signal."""


class LogRepaired(Value):
    """A record cut off by a crash was removed when the log was opened for writing."""

    kind: Literal["log_repaired"] = "log_repaired"
    offset: int
    n_bytes: int
    sha: Sha
    """Of the removed bytes, which are kept as a blob."""


class BlobsPruned(Value):
    """The operator gave up blobs of some kinds to save space; they are removed after this."""

    kind: Literal["blobs_pruned"] = "blobs_pruned"
    blob_kinds: tuple[BlobKind, ...]
    n_blobs: int
    n_bytes: int
    """That they took in the run folder, compressed."""
    list: Sha
    """Their names, one a line."""


# ---- orders --------------------------------------------------------------------------------


class OperatorPaused(Value):
    """Order: no new work until the run is told to go on; what is under way is finished."""

    kind: Literal["operator_paused"] = "operator_paused"
    order: OrderId


class OperatorContinued(Value):
    """Order: a paused run goes on."""

    kind: Literal["operator_continued"] = "operator_continued"
    order: OrderId


class OperatorHinted(Value):
    """Order: the next prompts of a kernel say this. Hints are numbered from 1 in their order."""

    kind: Literal["operator_hinted"] = "operator_hinted"
    order: OrderId
    kernel: str
    text: Words


class CandidateVetoed(Value):
    """Order: a candidate is out, whatever it measures; `CandidateWithdrawn` follows."""

    kind: Literal["candidate_vetoed"] = "candidate_vetoed"
    order: OrderId
    candidate: CandidateId
    reason: Words


class LimitChange(Value):
    """A new limit of a budget."""

    resource: Resource
    amount: float
    is_relative: bool
    """Whether the amount is added to the limit so far."""


class BudgetChanged(Value):
    """Order: from here on the run has other limits."""

    kind: Literal["budget_changed"] = "budget_changed"
    order: OrderId
    changes: tuple[LimitChange, ...]


# ---- roles ---------------------------------------------------------------------------------


class Spend(Value):
    """An amount of everything that a budget limits."""

    model_calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    device_s: float = 0.0


class Usage(Value):
    """Tokens that calls took, as their provider counts them."""

    tokens_in: int = Field(ge=0)
    tokens_out: int = Field(ge=0)


class TurnAssigned(Value):
    """Request: a role is asked for one reply."""

    kind: Literal["turn_assigned"] = "turn_assigned"
    turn: int
    """Number of the turn, from 1."""
    kernel: str
    role: RoleName
    task: Task
    nth: int
    """Of the turns of this kernel and task, from 1."""
    model: ModelName
    """Who is asked, by the name in the campaign."""
    parent: CandidateId
    """The best version when the turn was assigned."""
    thread: int
    """First turn of this chain."""
    architect: int | None = None
    """First turn of an implementer's own thread: the turn whose design it takes over."""
    repairs: CandidateId | None = None
    """Implementer: its candidate that screening refused, to be written again."""
    plan: Sha | None = None
    """Implementer: the architect's plan."""
    draft: Sha | None = None
    """Reviewer: the source to read. Implementer: the refused one."""
    diagnostics: Sha | None = None
    """Implementer: what the build said of the refused source, if it was the build."""
    document: str = ""
    passage: Sha | None = None
    """Summary: title of a document, and the part of it to read."""
    complaint: str | None = None
    """Repair: why the last reply could not be used."""
    previous: Sha | None = None
    """Repair: the last reply."""
    attempt: int = 0
    reserved: Spend
    reasons: str


class DesignPlan(Value):
    """An architect's whole-kernel design, in words."""

    hypothesis: str
    expected_speedup: float | None = None
    bottleneck: str = ""
    """What is expected to limit it; a catalogue's move need not say."""
    bytes_moved: float | None = None
    """Between the device and its memory in one launch, as expected."""
    plan: Sha
    move: str = ""
    cites: tuple[str, ...] = ()


class Designs(Value):
    """What an architect wants built, the most promising first."""

    type: Literal["designs"] = "designs"
    designs: tuple[DesignPlan, ...]


class Draft(Value):
    """A source that a role wants tried."""

    type: Literal["draft"] = "draft"
    hypothesis: str
    expected_speedup: float | None = None
    source: Sha
    normalized: Sha
    """SHA-256 of the source without comments and spacing: equal means duplicate."""
    move: str = ""
    """Catalogue's name of the move; empty for a model."""
    cites: tuple[str, ...] = ()


class Claim(Value):
    """What an agent says of the target."""

    says: str
    """One sentence."""
    quote: Sha | None
    """Summary: the words of the passage that it rests on."""
    probe: "Probe | None"


class Analysis(Value):
    """An analyst's one bottleneck."""

    type: Literal["analysis"] = "analysis"
    bottleneck: str
    advice: str
    claims: tuple[Claim, ...] = ()
    """That a program can check."""
    dropped: tuple[str, ...] = ()
    """Why other claims of the reply are not among them."""


class Summary(Value):
    """What an analyst says that a passage of a document says."""

    type: Literal["summary"] = "summary"
    claims: tuple[Claim, ...]
    dropped: tuple[str, ...] = ()
    """As of `Analysis`; a claim whose probe alone is dropped is kept."""


class Review(Value):
    """A reviewer's opinion of a draft."""

    type: Literal["review"] = "review"
    go: bool
    reason: str


class Complaint(Value):
    """A reply that cannot be used, and exactly why."""

    type: Literal["complaint"] = "complaint"
    reason: str


class Nothing(Value):
    """The role has nothing (more) to propose."""

    type: Literal["nothing"] = "nothing"
    reason: str


Outcome = Annotated[
    Designs | Draft | Analysis | Summary | Review | Complaint | Nothing,
    Field(discriminator="type"),
]


class RoleReplied(Value):
    """Reply: what a role answered, whole, and what it was read as."""

    kind: Literal["role_replied"] = "role_replied"
    turn: int
    prompt: Sha
    reply: Sha
    outcome: Outcome
    provider: str
    """``catalogue``, ``litellm:<model>``, ``command:<program>``, ``manual:<folder>`` or
    ``recorded:<run>``."""
    template: Sha
    """Content hash of the prompt template."""
    dropped: tuple[str, ...] = ()
    """What the prompt had no room for: ids of facts, and how many lessons and moves."""
    usage: Usage | None
    """None if nobody says, or nobody could believe it: then it counts what was reserved."""
    spent: Spend
    wall_s: float


class TurnFailed(Value):
    """Reply: the role gave no reply (time limit, exit status, network, refusal)."""

    kind: Literal["turn_failed"] = "turn_failed"
    turn: int
    reason: str
    usage: Usage | None
    """As of `RoleReplied`; None also if a call may have been paid for and nobody can tell."""
    spent: Spend


class TurnDropped(Value):
    """Decision: a chain of turns ended without a candidate."""

    kind: Literal["turn_dropped"] = "turn_dropped"
    turn: int
    reason: str


class CandidateProposed(Value):
    """Decision: a source enters the Design Tree."""

    kind: Literal["candidate_proposed"] = "candidate_proposed"
    candidate: CandidateId
    kernel: str
    form: Form
    parent: CandidateId | None
    hypothesis: str
    expected_speedup: float | None = None
    source: Sha
    normalized: Sha
    move: str = ""
    cites: tuple[str, ...] = ()
    author: str
    """``target`` for its own sources, else ``role/provider``."""
    models: dict[str, ModelName] = {}
    """Who answered for the roles of its thread."""
    turn: int | None = None
    reply: Sha | None = None
    """Steps: the reply that holds the edits, to apply them again to another parent."""
    rebased_from: CandidateId | None = None
    """The same step on an earlier best version."""
    repairs: CandidateId | None = None
    """The refused source of the same design, of which this one is the repair."""


class RebaseRequested(Value):
    """Request: apply a step's edits to the version that has replaced its parent."""

    kind: Literal["rebase_requested"] = "rebase_requested"
    candidate: CandidateId
    kernel: str
    onto: CandidateId
    onto_source: Sha
    reply: Sha


class EditsReapplied(Value):
    """Reply: the step on its new parent, or why its edits do not fit there."""

    kind: Literal["edits_reapplied"] = "edits_reapplied"
    candidate: CandidateId
    outcome: Annotated[Draft | Complaint, Field(discriminator="type")]


# ---- screening -----------------------------------------------------------------------------


class ScreeningRequested(Value):
    """Request: build a candidate and check it for correctness."""

    kind: Literal["screening_requested"] = "screening_requested"
    candidate: CandidateId
    kernel: str
    source: Sha
    twin: CandidateId | None
    """An earlier candidate with the same normalized source."""
    fixture_seeds: tuple[int, ...]
    spared_by: tuple[int, ...] = ()
    """Rules, by number of the fact, that do not refuse it even if it breaks them: all of them for
    the target's own sources, and each for a random share of the others, so that false refusals are
    found."""


class StageReport(Value):
    """Evidence of one stage; stages after the first failed one are absent."""

    stage: Stage
    passed: bool
    detail: str
    wall_s: float


class FixtureReport(Value):
    """Evidence of one fixture of the correctness stage."""

    fixture: str
    """Distribution, amplitude and whether it is held out."""
    margin: float | None
    """max |error| / (atol + rtol |reference|) over all outputs; None if nothing can be compared."""
    detail: str = ""
    """Why the fixture failed: crash, time limit, system call, overrun, unstable, not finite."""


class StaticCost(Value):
    """What the target's own cost model says of a candidate: a hint, and no reading."""

    cycles: int = Field(gt=0)
    """Makespan of the static schedule."""
    profile: Sha
    """Where they go, as text; it begins with the makespan."""


class CandidateExamined(Value):
    """Reply: the evidence of screening."""

    kind: Literal["candidate_examined"] = "candidate_examined"
    candidate: CandidateId
    stages: tuple[StageReport, ...]
    fixtures: tuple[FixtureReport, ...]
    artifact: Sha | None
    diagnostics: Sha | None
    signature: str | None
    """Normalized diagnostic of a failed build."""
    breaks: tuple[int, ...] = ()
    """The legality rules that it breaks, by number of the fact."""
    cost: StaticCost | None = None
    """None: it was refused before, or the target has no cost model."""
    toolchain: str
    """Digest of the fingerprint that built it."""


class CandidateScreened(Value):
    """Decision: a candidate may be measured, or not."""

    kind: Literal["candidate_screened"] = "candidate_screened"
    candidate: CandidateId
    passed: bool
    stage: Stage | Literal["cost"] | None
    """What refused it: a stage, or its static cost."""
    reason: str


# ---- device --------------------------------------------------------------------------------


class MeasurementRequested(Value):
    """Request: one device job, one process, at most a few pairs."""

    kind: Literal["measurement_requested"] = "measurement_requested"
    job: int
    """Number of the job, from 1."""
    kernel: str
    purpose: Purpose
    incumbent: CandidateId
    candidate: CandidateId
    """Equal to `incumbent` for an A/A job."""
    incumbent_artifact: Sha
    candidate_artifact: Sha
    programs: dict[str, Sha] = {}
    """Bound and probe jobs: the target's own sources to build and interleave with the incumbent."""
    microbenchmark: str = ""
    """Probe jobs: whose programs they are."""
    coins: tuple[bool, ...]
    """Per pair: True if the candidate runs first."""
    scale: tuple[float, float] | None = None
    """Tests: pair scale s and slot effect p, log-percent, fixed before the first pair."""
    launches: int
    """Launches per run."""
    inputs_seed: int
    """Of the inputs that the arms run on; from the secret seed."""
    reserved: Spend
    reasons: str


class Pair(Value):
    """One incumbent run and one candidate run back to back."""

    candidate_first: bool
    incumbent_s: float = Field(gt=0)
    candidate_s: float = Field(gt=0)
    probe_s: float = Field(ge=0)
    """Condition probe before the pair: the machine's state, for people and plots."""


class PairsMeasured(Value):
    """Reply: the pairs of one job; the warm-up pair is only in the raw samples."""

    kind: Literal["pairs_measured"] = "pairs_measured"
    job: int
    pairs: tuple[Pair, ...]
    samples: Sha
    """Every launch of every run, warm-up included (JSON)."""
    incumbent_margin: float
    candidate_margin: float
    """Correctness checked again on the device, as in `FixtureReport.margin`."""
    device_s: float
    token: int
    """Fencing token of the lease under which the job ran."""
    toolchain: str


class Spread(Value):
    """Run times of one program in the rounds of a job, seconds per launch.

    With six rounds, the least and the greatest are a 97 % interval for the true median.
    """

    low: float
    median: float
    high: float


class ProgramsMeasured(Value):
    """Reply: the target's own programs interleaved with the incumbent."""

    kind: Literal["programs_measured"] = "programs_measured"
    job: int
    incumbent_s: float
    times_s: dict[str, "Spread"]
    """By program, of those that build."""
    samples: Sha
    """Every launch of every run, warm-up included (JSON)."""
    device_s: float
    token: int
    toolchain: str


class JobFailed(Value):
    """Reply: the job gave no pairs."""

    kind: Literal["job_failed"] = "job_failed"
    job: int
    arm: Literal["incumbent", "candidate", "device"]
    """Whose fault it is."""
    reason: str
    device_s: float


class RequestLost(Value):
    """Reply, by the mailbox or a resumed run: the actor is gone and nothing came back."""

    kind: Literal["request_lost"] = "request_lost"
    by: Literal["mailbox", "resume"]
    reason: str


class ToolchainChanged(Value):
    """Reply: an actor found another toolchain than the run's, so its work is still to be done."""

    kind: Literal["toolchain_changed"] = "toolchain_changed"
    toolchain: dict[str, str]
    """As in `RunStarted`."""


class WorkAbandoned(Value):
    """Decision: a request was lost with its actor too often and is not issued again."""

    kind: Literal["work_abandoned"] = "work_abandoned"
    work: str
    candidate: CandidateId | None = None
    """Screening: the candidate, which is refused."""
    turn: int | None = None
    """Roles: the turn, whose thread ends."""
    job: int | None = None
    """Device: the job, which counts as failed by the device's fault."""
    reason: str


# ---- acceptance ----------------------------------------------------------------------------


class CandidateAccepted(Value):
    """Decision: a candidate is the new best version of its kernel."""

    kind: Literal["candidate_accepted"] = "candidate_accepted"
    candidate: CandidateId
    incumbent: CandidateId
    capital: float
    n_pairs: int
    effect: float
    """Posterior mean of 100 ln(t_candidate / t_incumbent), log-percent; negative is faster."""
    low: float
    high: float
    """95 % confidence sequence at the stop, log-percent."""
    next_price: float
    """Price of a measurement after this candidate, log-percent."""
    reason: str


class CandidateRejected(Value):
    """Decision: a measured candidate is not going on."""

    kind: Literal["candidate_rejected"] = "candidate_rejected"
    candidate: CandidateId
    incumbent: CandidateId
    capital: float
    n_pairs: int
    effect: float | None
    low: float | None
    high: float | None
    next_price: float
    reason: str


class CandidateShelved(Value):
    """Decision: a candidate waits, with the premises under which it was set aside."""

    kind: Literal["candidate_shelved"] = "candidate_shelved"
    candidate: CandidateId
    premise_parent: CandidateId
    """The best version it was compared with or built on."""
    premise_toolchain: str
    capital: float
    n_pairs: int
    effect: float | None
    low: float | None
    high: float | None
    index: float | None
    """Expected gain per measurement of going on, log-percent; None if it was not for the price."""
    price: float
    """Price under which it was set aside."""
    next_price: float
    reason: str


class CandidateWithdrawn(Value):
    """Decision: a candidate is closed that the operator vetoed or a new toolchain refuses.

    Measurements against it are void.
    """

    kind: Literal["candidate_withdrawn"] = "candidate_withdrawn"
    candidate: CandidateId
    incumbent: CandidateId | None
    """The version before it, which is the best one again; None if the vetoed one was not it."""
    reason: str


class HarnessChecked(Value):
    """Decision: what a control says of the harness (canaries, sentinel)."""

    kind: Literal["harness_checked"] = "harness_checked"
    kernel: str
    control: Literal["canary_wrong", "canary_slow", "sentinel"]
    passed: bool
    reason: str


# ---- knowledge -----------------------------------------------------------------------------


class Timing(Value):
    """A program of a microbenchmark, what it counts, and its time."""

    counts: dict[str, float]
    """How often a launch does each thing, or how much of it."""
    time_s: float = Field(gt=0)
    """Median of the rounds, seconds per launch."""


class Probe(Value):
    """A program with what it should do: how a claim is checked."""

    kernel: str
    """Whose signature and fixtures it is built and checked under."""
    source: Sha
    predicts: Prediction
    signature: str = ""
    """``refused``: what the failure's signature begins with; "" for any failure."""
    low: float | None = None
    """``costs``: static cycles, at least."""
    high: float | None = None
    """``costs``: static cycles, at most."""


class LearningRequested(Value):
    """Request: the knowledge keeper learns from the records that this one follows from."""

    kind: Literal["learning_requested"] = "learning_requested"
    kernel: str
    topic: Topic
    figures: dict[str, float] = {}
    """Bound and noise: what the evidence says, in the units that the keys name."""
    diagnostics: Sha | None = None
    source: Sha | None = None
    signature: str = ""
    known_bad: tuple[Sha, ...] = ()
    """Rules: other sources that failed alike and that no rule refuses yet."""
    known_good: tuple[Sha, ...] = ()
    """Rules: sources known to build, which no rule may refuse."""
    elsewhere: tuple[Sha, ...] = ()
    """Rules: the baselines of the other kernels, for which a rule may hold as well."""
    likely: tuple["Predicate", ...] = ()
    """Rules: what sources of the other kernels with this signature are refused on."""
    microbenchmark: str = ""
    timings: tuple[Timing, ...] = ()
    """Microbenchmarks: its name, and what its programs took."""


class Condition(Value):
    """Tokens of a source, one behind the other, that may be a number out of its limit."""

    tokens: Annotated[tuple[str, ...], Field(min_length=1)]
    """``<word>`` and ``<number>`` stand for any, ``<n>`` for the number that is compared."""
    comparison: Comparison | None = None
    """What ``<n>`` must be for the condition to be met."""
    limit: float = 0.0


class Predicate(Value):
    """What no source may hold, in its target's normal form: it breaks a rule on any of these."""

    conditions: Annotated[tuple[Condition, ...], Field(min_length=1)]


class Trial(Value):
    """A source on which a predicate and the toolchain were both asked."""

    source: Sha
    """Its normal form, a blob."""
    breaks: bool
    """Whether the predicate is met."""
    is_refused: bool
    """Whether its build fails with the rule's signature."""


class FactLearned(Value):
    """Reply: a claim with its provenance; facts are numbered from 1 in the order of the log."""

    kind: Literal["fact_learned"] = "fact_learned"
    kernel: str
    topic: Topic
    claim: str
    """One sentence, as prompts show it."""
    value: dict[str, float] = {}
    signature: str = ""
    """Rules: normalized diagnostic."""
    predicate: Predicate | None = None
    """Rules: what no source may hold; None if nothing was found that tells refused sources from
    others."""
    trials: tuple[Trial, ...] = ()
    """Rules: what the predicate was held against, before it may refuse anything."""
    n_builds: int = 0
    """Rules: experiments that it took."""
    probe: Probe | None = None
    """Rules: the smallest source found that is refused alike, to ask another toolchain; None if
    the failure did not come again."""
    toolchain: str


class FactProposed(Value):
    """Decision: a claim that somebody makes; it gets the next number of a fact."""

    kind: Literal["fact_proposed"] = "fact_proposed"
    topic: Topic
    kernel: str
    """"" for the whole target."""
    claim: str
    """One sentence, as prompts show it."""
    passage: Sha | None = None
    """Documents: the text that it rests on."""
    probe: Probe | None = None
    """None: nobody knows how to check it."""
    author: str
    """As of a candidate."""


class FactCheckRequested(Value):
    """Request: the knowledge keeper runs a fact's probe."""

    kind: Literal["fact_check_requested"] = "fact_check_requested"
    fact: int
    probe: Probe
    fixture_seeds: tuple[int, ...]
    reasons: str


class FactChecked(Value):
    """Reply: what a probe did."""

    kind: Literal["fact_checked"] = "fact_checked"
    fact: int
    built: bool
    signature: str = ""
    """Normalized diagnostic of a failed build."""
    diagnostics: Sha | None = None
    fixtures: tuple[FixtureReport, ...] = ()
    """What a probe that is to compute gave on each."""
    cycles: int | None = None
    """Static cycles of a probe that is to cost; None where the target has no cost model."""
    wall_s: float
    toolchain: str


class FactJudged(Value):
    """Decision: what is believed of a fact from here on."""

    kind: Literal["fact_judged"] = "fact_judged"
    fact: int
    state: FactState
    reason: str


# ---- run -----------------------------------------------------------------------------------


class StateDigested(Value):
    """Decision: the digest of all projections before this record, for replay to check."""

    kind: Literal["state_digested"] = "state_digested"
    digest: Sha


class KernelFinished(Value):
    """Decision: nothing more will be tried on a kernel; its final figures."""

    kind: Literal["kernel_finished"] = "kernel_finished"
    kernel: str
    best: CandidateId
    speedup: float
    """Median over fresh pairs of baseline time over best time."""
    low: float
    high: float
    time_over_bound: float | None
    reason: str


class SearchClosed(Value):
    """Decision: no new proposals; what is in flight is dropped and the final pairs are taken."""

    kind: Literal["search_closed"] = "search_closed"
    reason: str


class RunFinished(Value):
    """Decision: the run is over."""

    kind: Literal["run_finished"] = "run_finished"
    geomean: float | None
    reason: str


Request = (
    TurnAssigned
    | RebaseRequested
    | ScreeningRequested
    | MeasurementRequested
    | LearningRequested
    | FactCheckRequested
)
Reply = (
    RoleReplied
    | TurnFailed
    | EditsReapplied
    | CandidateExamined
    | PairsMeasured
    | ProgramsMeasured
    | JobFailed
    | FactLearned
    | FactChecked
    | RequestLost
    | ToolchainChanged
)
Decision = (
    TurnDropped
    | CandidateProposed
    | CandidateScreened
    | WorkAbandoned
    | CandidateAccepted
    | CandidateRejected
    | CandidateShelved
    | CandidateWithdrawn
    | HarnessChecked
    | FactProposed
    | FactJudged
    | StateDigested
    | KernelFinished
    | SearchClosed
    | RunFinished
)
Order = OperatorPaused | OperatorContinued | OperatorHinted | CandidateVetoed | BudgetChanged
Mark = RunStarted | RunResumed | RunInterrupted | LogRepaired | BlobsPruned

# The discriminator makes validation one keyed lookup instead of a try of every model.
AnyEvent = Annotated[Mark | Order | Request | Reply | Decision, Field(discriminator="kind")]


class Record(NamedTuple):
    """One line of the log: who said what, when, and because of which records."""

    seq: Annotated[int, Field(ge=0)]
    time_ns: int
    """UTC, nanoseconds since the epoch. Decisions may use it, since it is recorded."""
    actor: str
    event: AnyEvent
    because: tuple[int, ...] = ()
    """Sequence numbers; a reply's first one is the request that it answers."""

    def as_json(self) -> dict[str, Any]:
        """Its values in types that JSON knows."""
        return {**self._asdict(), "event": self.event.model_dump(mode="json")}
