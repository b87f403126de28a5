"""The first event of a run: what it starts from, with the target's own sources stored."""

from collections.abc import Mapping
from types import MappingProxyType

from actors.screening import sha256
from decisions.policy import IN_FORCE
from events.blobs import Blobs
from events.campaign import Campaign
from events.vocabulary import KernelCard, KernelSources, Price, RunStarted
from targets.protocol import Target


def first_event(
    campaign: Campaign,
    target: Target,
    blobs: Blobs,
    *,
    secret_seed: str,
    versions: Mapping[str, str],
    prices: Mapping[str, Price] = MappingProxyType({}),
) -> RunStarted:
    """Store the target's sources and word the first event.

    Args:
        campaign: what to run.
        target: what to run it on.
        blobs: of the run.
        secret_seed: 64 hex digits.
        versions: of the programs.
        prices: of the campaign's models that call somebody.

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


def _card(kernel: str, target: Target) -> KernelCard:
    card = target.card(kernel)
    return KernelCard(task=card.task, weight_bytes=card.weight_bytes)
