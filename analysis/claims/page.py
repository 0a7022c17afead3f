"""Writes what came out of the claims of a paper as a page of Markdown, and keeps the verdicts that were accepted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from faultsweep.analysis.claims.claim import FOLDER, Claim, read_claims, read_readings
from faultsweep.analysis.claims.joint import SHIPPED, joint_table
from faultsweep.analysis.claims.judge import VERDICTS, Judgement

from faultsweep.errors import InputError

ACCEPTED = FOLDER / "accepted.json"
FULL, QUICK = "full", "quick"

Judgements = Mapping[str, Judgement]
"""Name of a claim -> what came out."""
Found = Mapping[str, Mapping[str, Judgements]]
"""Paper -> name of a reading -> what came out."""


def read_accepted(lane: str, path: Path = ACCEPTED) -> dict[str, dict[str, dict[str, Judgement]]]:
    """Return what was accepted as a ``Found``, with all replicates ("full") or few ("quick")."""
    raw: Any = json.loads(path.read_text()) if path.exists() else {}
    return {
        paper: {reading: {name: _judgement(one) for name, one in part.items()} for reading, part in readings.items()}
        for paper, readings in raw.get(lane, {}).items()
    }


def accept(found: Found, lane: str, path: Path = ACCEPTED) -> None:
    """Keep what came out as what is expected from now on; claims that were not judged keep what they had."""
    raw: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    kept = raw.setdefault(lane, {})
    for paper, readings in found.items():
        names = [claim.name for claim in read_claims(paper)]
        for reading, judgements in readings.items():
            known = kept.setdefault(paper, {}).get(reading, {})
            both = {**known, **{name: asdict(one) for name, one in judgements.items()}}
            kept[paper][reading] = {name: both[name] for name in names if name in both}
    path.write_text(json.dumps(raw, indent=1, ensure_ascii=False) + "\n")


def _judgement(raw: Mapping[str, Any]) -> Judgement:
    return Judgement(raw["verdict"], tuple(raw["found"]), tuple(raw["of_parts"]), raw["n"])


def changed(found: Found, accepted: Found) -> list[str]:
    """Return a sentence for each claim whose verdict is not the accepted one."""
    out = []
    for paper, readings in found.items():
        for reading, judgements in readings.items():
            before = accepted.get(paper, {}).get(reading, {})
            where = paper if reading == SHIPPED else f"{paper}, {reading}"
            for name, one in judgements.items():
                if name not in before:
                    out.append(f"{where}, {name}: {one.verdict}; no verdict was accepted before")
                elif before[name].verdict != one.verdict:
                    out.append(f"{where}, {name}: {one.verdict}, where '{before[name].verdict}' was accepted")
    return out


def count_table(found: Found) -> str:
    """Return a Markdown table: how many claims of each paper have each verdict, with the experiments as shipped."""
    lines = [f"| paper | claims | {' | '.join(VERDICTS)} |", f"| --- | --- |{' --- |' * len(VERDICTS)}"]
    total: Counter[str] = Counter()
    for paper, readings in found.items():
        count = Counter(one.verdict for one in readings[SHIPPED].values())
        total += count
        lines.append(_count_row(f"[{paper}](#{paper})", count))
    lines.append(_count_row("all", total))
    return "\n".join(lines)


def _count_row(name: str, count: Counter[str]) -> str:
    return f"| {name} | {count.total()} | {' | '.join(str(count[verdict]) for verdict in VERDICTS)} |"


def claim_table(claims: Sequence[Claim], judgements: Judgements) -> str:
    """Return a Markdown table of the claims of a paper: text, what came out, verdict, tolerance, experiment."""
    lines = ["| claim | here | verdict | holds within | experiment |", "| --- | --- | --- | --- | --- |"]
    for claim in claims:
        one = judgements.get(claim.name, Judgement(""))
        here = "; ".join(one.found) or claim.untestable
        if claim.note:
            here = f"{here}. {claim.note}"
        cells = (f"{claim.text} ({claim.place})", here, one.verdict, claim.tolerance, claim.experiment)
        lines.append(f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |")
    return "\n".join(lines)


def write_page(found: Found, path: Path, folder: Path = FOLDER) -> None:
    """Write the page of all papers: ``front.md``, the counts, and of each paper its prose ``PAPER.md`` and its tables.

    Raises InputError if the page cannot be written.
    """
    parts = [(folder / "front.md").read_text().strip(), count_table(found)]
    for paper, readings in found.items():
        prose = (folder / f"{paper}.md").read_text().strip()
        before, mark, after = prose.partition("<!-- claims -->")
        if not mark:
            raise InputError(f"{folder / f'{paper}.md'}: a line '<!-- claims -->' is missing, where the table goes")
        claims = read_claims(paper)
        parts += [before.strip(), claim_table(claims, readings[SHIPPED]), after.strip()]
        if len(readings) > 1:
            parts += [f"### Readings of {paper}", joint_table(claims, read_readings(paper), readings)]
    try:
        path.write_text("\n\n".join(filter(None, parts)) + "\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None
