"""Which single reading of a paper satisfies most claims, and which claims no reading satisfies together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from faultsweep.analysis.claims.claim import Claim, Reading
from faultsweep.analysis.claims.judge import AGREES, PARTLY, UNTESTABLE, Judgement

SHIPPED = "as shipped"

Joint = Mapping[str, Mapping[str, Judgement]]
"""Name of a reading -> name of a claim -> what came out."""


def satisfied(judgements: Mapping[str, Judgement], partly: bool = False) -> frozenset[str]:
    """Return the claims that agree, or that agree in part at least."""
    wanted = {AGREES, PARTLY} if partly else {AGREES}
    return frozenset(name for name, one in judgements.items() if one.verdict in wanted)


def maximal(found: Joint, partly: bool = False) -> dict[frozenset[str], list[str]]:
    """Return the sets of claims that some reading satisfies together, none within another, with their readings."""
    sets: dict[frozenset[str], list[str]] = {}
    for reading, judgements in found.items():
        sets.setdefault(satisfied(judgements, partly), []).append(reading)
    return {one: names for one, names in sets.items() if not any(one < other for other in sets)}


def excluded(found: Joint) -> list[tuple[str, str]]:
    """Return the pairs of claims that some readings satisfy, one each, and no reading satisfies together."""
    sets = [satisfied(judgements) for judgements in found.values()]
    names = sorted(frozenset().union(*sets))
    return [
        (a, b) for i, a in enumerate(names) for b in names[i + 1 :] if not any(a in one and b in one for one in sets)
    ]


def unexplained(found: Joint) -> list[str]:
    """Return the claims that can be tested and agree under no reading, not even in part."""
    tested = {name for judgements in found.values() for name, one in judgements.items() if one.verdict != UNTESTABLE}
    return sorted(tested.difference(*(satisfied(judgements, partly=True) for judgements in found.values())))


def joint_table(claims: Sequence[Claim], readings: Iterable[Reading], found: Joint) -> str:
    """Return Markdown: the readings with their warrants, reading x claim, and what holds together."""
    known = {reading.name: reading for reading in readings}
    lines = ["| reading | what is taken | warrant | agrees | in part | of |", "| --- | --- | --- | --- | --- | --- |"]
    for name, judgements in found.items():
        count = Counter(one.verdict for one in judgements.values() if one.verdict != UNTESTABLE)
        text, warrant = (
            (known[name].text, known[name].warrant) if name in known else ("the experiments as they are", "")
        )
        lines.append(f"| {name} | {text} | {warrant} | {count[AGREES]} | {count[PARTLY]} | {count.total()} |")
    lines += ["", f"| claim | {' | '.join(found)} |", f"| --- |{' --- |' * len(found)}"]
    for claim in claims:
        if claim.parts:
            row = [found[name][claim.name].verdict if claim.name in found[name] else "" for name in found]
            lines.append(f"| {claim.name} | {' | '.join(row)} |")
    return "\n".join([*lines, "", *(f"- {line}" for line in describe_joint(found))])


def describe_joint(found: Joint) -> list[str]:
    """Return which reading satisfies most claims, which pairs of claims exclude each other, and which none explains."""
    sets = maximal(found)
    most = max(map(len, sets))
    best = [name for one, names in sets.items() if len(one) == most for name in names]
    out = [f"Readings under which most claims agree ({most}): {', '.join(best)}."]
    if len(sets) > 1:
        parts = [f"{', '.join(sorted(one))} ({', '.join(names)})" for one, names in sets.items()]
        out.append(f"Maximal sets of claims that agree together: {'; '.join(parts)}.")
    pairs = excluded(found)
    if pairs:
        shown = "; ".join(f"{a} and {b}" for a, b in pairs)
        out.append(f"No reading satisfies both of: {shown}.")
    if left := unexplained(found):
        out.append(f"Satisfied under no reading, not even in part: {', '.join(left)}.")
    return out
