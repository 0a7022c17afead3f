"""Jobs that are suspended for others on a site, for the reference simulator: what they keep, and when they go on.

Written from the definitions in docs/model.md alone; it shares no code with the engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .state import Attempt, Moment

if TYPE_CHECKING:
    from .site import SiteSimulator


class Suspension:
    """The suspended attempts of a run are ``site.halted``."""

    def __init__(self, site: SiteSimulator):
        self.site = site

    def suspend(self, attempt: Attempt) -> None:
        site = self.site
        site.running.remove(attempt)
        site.halted.append(attempt)
        attempt.job.held[-1][1] = site.now
        attempt.job.suspensions += 1
        attempt.estimated_end += attempt.told_earlier
        attempt.halted_since, attempt.is_leaving, attempt.leaves_at, attempt.told_earlier = site.now, False, None, 0
        attempt.kept, attempt.gives = dict.fromkeys(site.bags[attempt], 0), True
        site.passes.changed = True
        site.log("suspend", attempt.job)

    def give_way(self, attempt: Attempt) -> None:
        attempt.kept, attempt.gives = dict.fromkeys(attempt.kept, 0), True

    def lacking(self, attempt: Attempt) -> dict[int, int]:
        held = {node: bag[0] - attempt.kept[node] for node, bag in self.site.bags[attempt].items()}
        return {node: cores for node, cores in held.items() if cores > 0}

    def take_back(self, attempt: Attempt) -> None:
        for node, cores in self.lacking(attempt).items():
            attempt.kept[node] += min(cores, self.site.free()[node][0])

    def keep_beside(self, nodes: set[int]) -> None:
        """A job has started on some nodes: what it leaves of these jobs' cores they keep."""
        for attempt in self.in_order():
            if nodes & set(attempt.kept):
                attempt.gives = False
                self.take_back(attempt)

    def in_order(self) -> list[Attempt]:
        return sorted(self.site.halted, key=lambda a: (-self.site.rank(a.job), a.job.index))

    def go_on(self, is_over: bool) -> None:
        for attempt in self.in_order():
            attempt.gives = attempt.gives and not is_over
            if not attempt.gives:
                self.take_back(attempt)
                if not self.lacking(attempt):
                    self.resume(attempt)
                    self.site.log("resume", attempt.job)

    def resume(self, attempt: Attempt) -> None:
        """All times of the attempt are later by how long it was suspended."""
        site, span = self.site, self.site.now - attempt.halted_since
        attempt.job.suspended += span
        attempt.resume += span
        attempt.estimated_end += span
        if attempt.saving:
            attempt.saving = (attempt.saving[0] + span, attempt.saving[1])
            attempt.paused_since += span
        attempt.halted_since, attempt.gives = None, False
        site.halted.remove(attempt)
        site.running.append(attempt)
        attempt.job.held.append([site.now, None, attempt.job.held_size])
        site.conservative.broken = True

    def expected_end(self, attempt: Attempt) -> Moment:
        """It goes on when what runs on the nodes of which it lacks cores is expected to have ended."""
        site, nodes = self.site, set(self.lacking(attempt))
        start = max([site.now, *(a.estimated_end for a in site.running if nodes & set(site.bags[a]))])
        left: Any = attempt.estimated_end - attempt.halted_since
        return (max(start, start + left), 0)
