"""Which jobs wait for others, from the texts in which accounting says it.

SLURM writes ``afterok:12:13,afterany:20_*`` (also ``(unfulfilled)`` behind a number), PBS ``afterok:12.server``, LSF
``done(12) && ended(13)``; of a log in SWF it is ``afterany:12 think 60 s``. All mean here that the others must have
ended, however they did. Not read are texts of other meanings: one of several jobs (``?``, ``||``), the start of another
one (``after``), any job of a name (``singleton``, names in quotes), the same task of another array (``aftercorr``),
some tasks of an array (``10_[1-2]``).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from faultsweep.simcore.model.dependencies import Dependencies, dependencies_of
from numpy.typing import NDArray

_THINK = r"(?: think (?P<think>\d+(?:\.\d+)?(?:e[+-]?\d+)?) s)?"
_PART = re.compile(rf"after(?:ok|any|notok|burstbuffer):(?P<after>\S+){_THINK}|before\w*:\S+|on:\d+")
_LSF = re.compile(r"(?:done|ended|exit)\(\s*(?P<job>\d+(?:\[\d+\])?)\s*(?:,[^()]*)?\)")
_STATE = re.compile(r"\(\w*\)")
_TASKS = re.compile(r"(?P<array>\d+)(?:_\*|\[\])(?:\..*)?")


def names_in(text: str) -> list[tuple[str, float]] | None:
    """Return the names of the jobs that must have ended, each with a think time, s; None of a text that is not read."""
    if "?" in text or "|" in text or "_[" in text:
        return None
    if "(" in text and _LSF.search(text):
        parts = [_LSF.fullmatch(part.strip()) for part in text.split("&&")]
        return None if None in parts else [(re.sub(r"\[(\d+)\]", r"_\1", part["job"]), 0.0) for part in parts if part]
    found: list[tuple[str, float]] = []
    for part in _STATE.sub("", text).split(","):
        match = _PART.fullmatch(part.strip())
        if match is None:
            return None
        think_s = float(match["think"] or 0.0)
        found += (
            [(name, think_s) for name in re.sub(r"@[^:]*", "", match["after"]).split(":")] if match["after"] else []
        )
    return found


def unread(texts: Sequence[str | None]) -> int:
    """Return how many of the texts say something that is not read."""
    known = {text: names_in(text) is None for text in set(texts) if text}
    return sum(known.get(text, False) for text in texts if text)


def pairs_of(jobs: Sequence[str | None], texts: Sequence[str | None]) -> Dependencies | None:
    """Return which jobs wait for which, by their names and the texts of their dependencies; None without any.

    A job that is named and not there, or not before the one that waits, is none that it waits for.
    """
    pairs: dict[tuple[int, int], float] = {}
    for row, places, think_s in _named(jobs, texts):
        for place in places:
            if place < row:
                pairs[row, place] = max(think_s, pairs.get((row, place), 0.0))
    if not any(texts):
        return None
    job, after = (np.array([pair[k] for pair in pairs], np.int64) for k in range(2))
    return dependencies_of(job, after, np.array(list(pairs.values())))


def unmet(
    jobs: Sequence[str | None], texts: Sequence[str | None], never: Sequence[bool] | NDArray[np.bool_]
) -> tuple[int, int, int]:
    """Return how many named jobs are not there, are not before the one that waits, and never ran though it did.

    never : whether a job never ran.
    """
    absent = late = idle = 0
    for row, places, _ in _named(jobs, texts):
        if not places:
            absent += 1
        elif min(places) >= row:
            late += 1
        elif not never[row]:
            idle += all(never[place] for place in places)
    return absent, late, idle


def _named(jobs: Sequence[str | None], texts: Sequence[str | None]) -> Iterator[tuple[int, Sequence[int], float]]:
    """Yield the row of a job that waits, the rows of the job or array that it names, and the think time, s."""
    places = _places(jobs) if any(texts) else {}
    for row, text in enumerate(texts):
        for name, think_s in (text and names_in(text)) or ():
            tasks = _TASKS.fullmatch(name)
            yield row, places.get(tasks["array"] if tasks else name, ()), think_s


def _places(jobs: Sequence[str | None]) -> dict[str, list[int]]:
    """Return the rows of each name: of a job, of an array or a heterogeneous job as a whole, with the server or not."""
    places: dict[str, list[int]] = defaultdict(list)
    for row, job in enumerate(jobs):
        if job:
            plain = job.split(".")[0]
            for name in {job, plain, re.split(r"[_+\[]", plain)[0]}:
                places[name].append(row)
    return places
