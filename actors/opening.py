"""The first event of a run: what it starts from, with the target's own sources stored."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from actors.screening import sha256
from decisions.policy import IN_FORCE
from events.blobs import Blobs
from events.campaign import Campaign
from events.vocabulary import (
    DocumentText,
    FactProposed,
    KernelCard,
    KernelSources,
    MicrobenchmarkSources,
    PointSource,
    Price,
    Probe,
    RunStarted,
)
from knowledge.carried import Carried, CarriedFact, misfit
from knowledge.passages import passages
from targets.protocol import Document, Documented, Microbenchmark, Probed, Target


def first_event(
    campaign: Campaign,
    target: Target,
    blobs: Blobs,
    *,
    secret_seed: str,
    versions: Mapping[str, str],
    documents: Sequence[Document] = (),
    prices: Mapping[str, Price] = MappingProxyType({}),
    facts: Sequence[Carried] = (),
) -> RunStarted:
    """Store the target's sources and documents and what other runs have found; word the event.

    Args:
        campaign: what to run.
        target: what to run it on.
        blobs: of the run.
        secret_seed: 64 hex digits.
        versions: of the programs.
        documents: to read after the target's own.
        prices: of the campaign's models that call somebody.
        facts: of other runs; those that fit the campaign's kernels are offered, each once.

    Raises:
        TargetError: the target cannot be used here, or knows no such kernel.
    """
    return RunStarted(
        campaign=campaign,
        secret_seed=secret_seed,
        versions=dict(versions),
        rules=dict(IN_FORCE),
        toolchain=target.fingerprint(),
        sources={kernel: _sources(kernel, target, blobs) for kernel in campaign.kernels},
        prices=dict(prices),
        shares_host=target.shares_host,
        cards={kernel: _card(kernel, target) for kernel in campaign.kernels},
        documents=_documents(target, documents, blobs),
        microbenchmarks=_microbenchmarks(campaign.kernels[0], target, blobs),
        offers=tuple(dict.fromkeys(_offers(facts, campaign.kernels, blobs))),
    )


def _sources(kernel: str, target: Target, blobs: Blobs) -> KernelSources:
    own = target.sources(kernel)
    return KernelSources(
        baseline=blobs.put(own.baseline.encode()),
        baseline_normalized=sha256(target.normalize(own.baseline).encode()),
        canary_wrong=blobs.put(own.canary_wrong.encode()),
        canary_slow=blobs.put(own.canary_slow.encode()),
        bounds={name: blobs.put(source.encode()) for name, source in own.bounds.items()},
    )


def _documents(
    target: Target, further: Sequence[Document], blobs: Blobs
) -> tuple[DocumentText, ...]:
    own = target.documents() if isinstance(target, Documented) else ()
    return tuple(
        DocumentText(
            title=document.title,
            passages=tuple(blobs.put(part.encode()) for part in passages(document.text)),
        )
        for document in (*own, *further)
    )


def _microbenchmarks(kernel: str, target: Target, blobs: Blobs) -> dict[str, MicrobenchmarkSources]:
    """Store the programs of the target's microbenchmarks; on one kernel's buffers will do."""
    if not isinstance(target, Probed):
        return {}

    def points(family: Microbenchmark) -> dict[str, PointSource]:
        return {
            name: PointSource(source=blobs.put(point.source.encode()), counts=dict(point.counts))
            for name, point in family.points.items()
        }

    return {
        family.name: MicrobenchmarkSources(kernel=kernel, points=points(family))
        for family in target.microbenchmarks(kernel)
    }


def _offers(
    facts: Sequence[Carried], kernels: Sequence[str], blobs: Blobs
) -> Iterator[FactProposed]:
    for carried in facts:
        for fact in carried.facts:
            if not misfit(fact, kernels):
                yield _offer(fact, f"imported from {carried.run}", blobs)


def _offer(fact: CarriedFact, author: str, blobs: Blobs) -> FactProposed:
    probe = None
    if own := fact.probe:
        source = blobs.put(own.source.encode())
        probe = Probe.model_validate(own.model_dump() | {"source": source})
    return FactProposed(
        topic=fact.topic,
        kernel=fact.kernel,
        claim=fact.claim,
        passage=None if fact.passage is None else blobs.put(fact.passage.encode()),
        probe=probe,
        author=author,
    )


def _card(kernel: str, target: Target) -> KernelCard:
    card = target.card(kernel)
    return KernelCard(task=card.task, weight_bytes=card.weight_bytes)
