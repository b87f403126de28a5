"""Microbenchmarks of the cpu target, as text: what they count is what they do."""

import re
from math import gcd

import pytest

from decisions.fitting import is_fittable
from events.vocabulary import Timing
from targets.cpu.gate import source_fault
from targets.cpu.probes import microbenchmarks
from targets.gemma4.kernels import KERNELS, PRESETS, Kernel, kernel
from targets.protocol import Microbenchmark

ARMS = 16
"""That one process loads: the best version and the programs."""
EVERY = [kernel(name, preset) for name in KERNELS for preset in PRESETS]
_RUNS = re.compile(r"runs\(\(const uint8_t \*\)a->(\w+), (\d+), (\d+), (\d+), total\)")


def families(of: Kernel) -> dict[str, Microbenchmark]:
    return {family.name: family for family in microbenchmarks(of)}


@pytest.mark.parametrize("of", EVERY, ids=lambda k: f"{k.name}-{k.preset}")
def test_every_family_can_be_fitted_and_fits_one_job(of: Kernel) -> None:
    """Its programs tell the things apart, with one to spare, and the runner loads them at once."""
    assert list(families(of)) == ["passes", "rows", "f8", "f4", "stream", "misses", "overlap"]
    for family in families(of).values():
        times = [Timing(counts=dict(p.counts), time_s=1.0) for p in family.points.values()]
        assert is_fittable(times), family.name
        assert len(family.points) < ARMS


@pytest.mark.parametrize("of", EVERY, ids=lambda k: f"{k.name}-{k.preset}")
def test_they_keep_to_the_rules_of_candidates(of: Kernel) -> None:
    """They pass the same gate, and no two do the same."""
    sources = [point.source for f in families(of).values() for point in f.points.values()]

    assert [fault for source in sources if (fault := source_fault(source))] == []
    for family in families(of).values():
        assert len({point.source for point in family.points.values()}) == len(family.points)


@pytest.mark.parametrize("of", EVERY, ids=lambda k: f"{k.name}-{k.preset}")
def test_runs_read_what_is_counted_no_byte_twice_and_none_outside(of: Kernel) -> None:
    """A stride without a common factor comes by every run before it comes by one again."""
    units = {"stream": 1e6, "misses": 64e3}
    for name, unit in units.items():
        for point in families(of)[name].points.values():
            if not (calls := _RUNS.findall(point.source)):
                assert point.counts == {"launch": 1}
                continue
            run, off = (int(re.findall(rf"{m} (\d+)", point.source)[0]) for m in ("RUN", "OFF"))
            n_bytes = 0
            for buffer, n, n_all, stride in ((b, *map(int, rest)) for b, *rest in calls):
                assert 0 < n <= n_all
                assert n == 1 or (gcd(stride, n_all) == 1 and stride < n_all)
                assert off + n_all * run <= of.buffer(buffer).n_bytes
                n_bytes += n * run
            (thing,) = point.counts.keys() - {"launch"}
            assert point.counts[thing] == n_bytes / unit


def test_runs_are_far_apart() -> None:
    """The next one is in another page, and not in the one after it."""
    points = families(kernel(KERNELS[0], "full"))["stream"].points
    for point in points.values():
        for _, _, n_all, stride in _RUNS.findall(point.source):
            assert int(n_all) / 3 < int(stride) < 2 * int(n_all) / 3
