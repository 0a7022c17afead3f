"""Writes what came out of the claims of a paper as a page of Markdown, and keeps the verdicts that were accepted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from faultsweep.analysis.claims.claim import FOLDER, Claim, papers, read_claims
from faultsweep.analysis.claims.judge import VERDICTS, Judgement

from faultsweep.errors import InputError

ACCEPTED = FOLDER / "accepted.json"
FULL, QUICK = "full", "quick"
LANES = (FULL, QUICK)

Judgements = Mapping[str, Judgement]
"""Name of a claim -> what came out."""


def read_accepted(lane: str, path: Path = ACCEPTED) -> dict[str, dict[str, Judgement]]:
    """Return paper -> claim -> what was accepted, with all replicates ("full") or few ("quick")."""
    raw: Any = json.loads(path.read_text()) if path.exists() else {}
    return {
        paper: {name: Judgement(**{key: _frozen(value) for key, value in one.items()}) for name, one in found.items()}
        for paper, found in raw.get(lane, {}).items()
    }


def accept(found: Mapping[str, Judgements], lane: str, path: Path = ACCEPTED) -> None:
    """Keep what came out as what is expected from now on; claims that were not judged keep what they had."""
    raw: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    kept = raw.setdefault(lane, {})
    for paper, judgements in found.items():
        names = [claim.name for claim in read_claims(paper)]
        both = {**kept.get(paper, {}), **{name: asdict(one) for name, one in judgements.items()}}
        kept[paper] = {name: both[name] for name in names if name in both}
    path.write_text(json.dumps(raw, indent=1, ensure_ascii=False, sort_keys=False) + "\n")


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def changed(found: Mapping[str, Judgements], accepted: Mapping[str, Judgements]) -> list[str]:
    """Return a sentence for each claim whose verdict is not the accepted one."""
    out = []
    for paper, judgements in found.items():
        for name, one in judgements.items():
            before = accepted.get(paper, {}).get(name)
            if before is None:
                out.append(f"{paper}, {name}: {one.verdict}; no verdict was accepted before")
            elif before.verdict != one.verdict:
                out.append(f"{paper}, {name}: {one.verdict}, where '{before.verdict}' was accepted")
    return out


def count_table(found: Mapping[str, Judgements]) -> str:
    """Return a Markdown table: how many claims of each paper have each verdict."""
    lines = [f"| paper | claims | {' | '.join(VERDICTS)} |", f"| --- | --- |{' --- |' * len(VERDICTS)}"]
    total: Counter[str] = Counter()
    for paper, judgements in found.items():
        count = Counter(one.verdict for one in judgements.values())
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


def write_page(found: Mapping[str, Judgements], path: Path, folder: Path = FOLDER) -> None:
    """Write the page of all papers: ``front.md``, the counts, and of each paper its prose ``PAPER.md`` and its table.

    Raises InputError if the page cannot be written.
    """
    parts = [(folder / "front.md").read_text().strip(), count_table(found)]
    for paper in found:
        prose = (folder / f"{paper}.md").read_text().strip()
        before, mark, after = prose.partition("<!-- claims -->")
        if not mark:
            raise InputError(f"{folder / f'{paper}.md'}: a line '<!-- claims -->' is missing, where the table goes")
        parts += [before.strip(), claim_table(read_claims(paper), found[paper]), after.strip()]
    try:
        path.write_text("\n\n".join(filter(None, parts)) + "\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None


def accepted_page(path: Path) -> None:
    """Write the page from what was accepted, without any results."""
    accepted = read_accepted(FULL)
    write_page({paper: accepted.get(paper, {}) for paper in papers()}, path)
