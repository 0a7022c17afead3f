"""Judges claims: what an estimate and its interval say of the region in which a claim holds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import xarray as xr
from faultsweep.analysis.claims.claim import Claim, Part
from faultsweep.analysis.claims.measure import Estimate, measure

AGREES = "agrees"
PARTLY = "agrees in part"
DIFFERS = "does not agree"
UNKNOWN = "cannot be told"
UNTESTABLE = "not testable"
VERDICTS = (AGREES, PARTLY, DIFFERS, UNKNOWN, UNTESTABLE)


@dataclass(frozen=True)
class Judgement:
    """What came out of a claim: the verdict, each part's estimate as text and its own verdict, and the replicates."""

    verdict: str
    found: tuple[str, ...] = ()
    of_parts: tuple[str, ...] = ()
    n: int = 0


def judge(claim: Claim, data: xr.Dataset | None) -> Judgement:
    """Return the verdict on a claim from the results of its experiment (None for a claim that cannot be tested)."""
    if data is None:
        return Judgement(UNTESTABLE)
    estimates = [measure(part, data) for part in claim.parts]
    verdicts = [judge_part(part, estimate) for part, estimate in zip(claim.parts, estimates, strict=True)]
    found = tuple(
        f"{part.label}: {estimate.text}" if part.label else estimate.text
        for part, estimate in zip(claim.parts, estimates, strict=True)
    )
    return Judgement(combine(verdicts), found, tuple(verdicts), max(estimate.n for estimate in estimates))


def judge_part(part: Part, estimate: Estimate) -> str:
    """Return what an estimate says of one part.

    It agrees if the whole interval is where the claim holds, or if the estimate is there and the interval does not
    leave the region where it holds in part. Where the interval excludes that the claim holds, it agrees in part if the
    whole interval is where it holds in part, and else it does not agree. Everything else cannot be told.
    """
    low, high, value = estimate.low, estimate.high, estimate.value
    if math.isnan(value) or math.isnan(low):
        return UNKNOWN
    around = part.partly or part.holds
    if part.holds.holds(low, high):
        return AGREES
    if not part.holds.meets(low, high):
        return PARTLY if around.holds(low, high) else DIFFERS
    if around.holds(low, high):
        return AGREES if part.holds.holds(value, value) else PARTLY
    return UNKNOWN


def combine(verdicts: Sequence[str]) -> str:
    """Return the verdict on a claim from those on its parts."""
    kinds = set(verdicts)
    if len(kinds) == 1:
        return kinds.pop()
    if DIFFERS in kinds:
        return PARTLY if kinds & {AGREES, PARTLY} else DIFFERS
    return UNKNOWN if UNKNOWN in kinds else PARTLY
