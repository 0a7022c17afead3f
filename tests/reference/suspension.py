"""Jobs that are suspended for others on a site, for the reference simulator: by the cores that they have.

Written from the definitions in docs/model.md alone; it shares no code with the engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .state import Attempt, Job, Moment

if TYPE_CHECKING:
    from .site import SiteSimulator

Core = tuple[int, int]
"""A node, and the number of one of its cores."""


class Suspension:
    """The suspended attempts of a run are ``site.halted``; ``cores`` are those of all that run or are suspended."""

    def __init__(self, site: SiteSimulator):
        self.site = site
        self.cores: dict[Attempt, set[Core]] = {}
        self.over: set[Any] = set()  # classes whose jobs the next one starts over

    @property
    def is_on(self) -> bool:
        return self.site.options.preemption == "suspend"

    def holders(self) -> list[Attempt]:
        """Those that run or are suspended, the last that started first."""
        return sorted(self.site.running + self.site.halted, key=lambda a: -a.order)

    # -- where a job starts --------------------------------------------------------------------------------------

    def class_of(self, job: Job) -> tuple[Any, Any]:
        """Higher ones are behind lower ones, and of equal ones the first behind the others."""
        return self.site.options.preempt_order(job), -self.site.options.preempt_class(job)

    def taken(self, over: set[Any]) -> set[Core]:
        """The cores of all jobs but those of some classes."""
        return set().union(*(self.cores[a] for a in self.holders() if self.class_of(a.job) not in over))

    def place(self, job: Job, usable: set[int], time: Any = None) -> Any:
        """What a job would hold over others of some nodes; nothing if there is no room. Sets whom it is over."""
        if not self.is_on:
            return {}
        over = sorted({self.class_of(a.job) for a in self.holders() if self.site.options.preempts(job, a.job)})
        found: Any = {}
        while over:
            bags = self.bags_over(job, usable, set(over), time)
            if not bags:
                break
            found, self.over = bags, set(over)
            over.pop()
        return found

    def bags_over(self, job: Job, usable: set[int], over: set[Any], time: Any) -> Any:
        site, taken = self.site, self.taken(over)
        free = site.free()
        for node, (has, bag) in enumerate(zip([n.has[0] for n in site.nodes], free, strict=True)):
            cores = has - sum(core[0] == node for core in taken)
            free[node] = (cores, *bag[1:]) if node in usable and node not in site.down else (0, 0, 0)
        if site.room(job, free, time) < site.needs[job].chunks:
            return {}
        site.row = 0
        return site.held_of(job, site.choose_nodes(job, free, time))

    def take(self, attempt: Attempt) -> None:
        """A job has started: it has the first cores of its nodes that nobody has but those that it is over."""
        if self.is_on:
            taken, over = self.taken_beside(attempt), self.over
            self.cores[attempt] = set()
            for node, bag in self.site.bags[attempt].items():
                self.take_of(attempt, node, bag[0], taken)
            self.over = set()
            if over:
                self.settle()

    def taken_beside(self, attempt: Attempt) -> set[Core]:
        others = [a for a in self.holders() if a is not attempt and self.class_of(a.job) not in self.over]
        return set().union(*(self.cores[a] for a in others))

    def take_of(self, attempt: Attempt, node: int, count: int, taken: set[Core]) -> None:
        free = [(node, core) for core in range(self.site.nodes[node].has[0]) if (node, core) not in taken]
        assert len(free) >= count
        self.cores[attempt] |= set(free[:count])

    def move(self, attempt: Attempt, node: int, other: int, count: int) -> None:
        """What a running job has of a node is now of another one."""
        if self.is_on:
            self.cores[attempt] = {core for core in self.cores[attempt] if core[0] != node}
            self.take_of(attempt, other, count, self.taken_beside(attempt))

    # -- who runs ------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """The last that started runs, and each before it whose cores nobody of those has."""
        busy: set[Core] = set()
        for attempt in self.holders() if self.is_on else []:
            if not self.cores[attempt] & busy:
                busy |= self.cores[attempt]
                if attempt in self.site.halted:
                    self.resume(attempt)
                    self.site.log("resume", attempt.job)
            elif attempt in self.site.running:
                self.suspend(attempt)

    def kept(self, attempt: Attempt, node: int) -> int:
        """How many cores of a node a suspended job keeps: those of nobody that runs or started later."""
        others = [a for a in self.holders() if a in self.site.running or (a is not attempt and a.order > attempt.order)]
        mine = self.cores[attempt] - set().union(*(self.cores[a] for a in others))
        return sum(core[0] == node for core in mine)

    def suspend(self, attempt: Attempt) -> None:
        site = self.site
        site.running.remove(attempt)
        site.halted.append(attempt)
        attempt.job.held[-1][1] = site.now
        attempt.job.suspensions += 1
        attempt.halted_since = site.now
        site.passes.changed = True
        site.log("suspend", attempt.job)

    def resume(self, attempt: Attempt) -> None:
        """All times of the attempt are later by how long it was suspended."""
        site, span = self.site, self.site.now - attempt.halted_since
        attempt.job.suspended += span
        attempt.resume += span
        attempt.estimated_end += span
        if attempt.saving:
            attempt.saving = (attempt.saving[0] + span, attempt.saving[1])
            attempt.paused_since += span
        attempt.halted_since = None
        site.halted.remove(attempt)
        site.running.append(attempt)
        attempt.job.held.append([site.now, None, attempt.job.held_size])
        site.conservative.broken = True

    def expected_end(self, attempt: Attempt) -> Moment:
        """It goes on when what runs on its cores is expected to have ended."""
        site, mine = self.site, self.cores[attempt]
        start = max([site.now, *(a.estimated_end for a in site.running if self.cores[a] & mine)])
        left: Any = attempt.estimated_end - attempt.halted_since
        return (max(start, start + left), 0)
