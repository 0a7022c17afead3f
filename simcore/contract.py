"""What a policy says of itself, and what follows from it: valid values, refusals, and which parameters are inert.

A role is a folder of ``policies``, a policy one of its files. A policy declares its parameters, the roles that it
consults, what it becomes where it degenerates, and what it cannot be combined with. A parameter is live if a run can
reach its policy through what live policies consult, after each has become what it becomes; all others are inert
(MODEL, section 10). Conditions are functions of a ``Run``, which reads the values of a configuration.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from faultsweep.simcore import installed

from faultsweep.errors import InputError, unknown_name

Config = Mapping[str, Any]
Condition = Callable[["Run"], bool]
Named = str | tuple[str, Condition]
"""A name that counts always, or on a condition."""

LARGEST_INT = 2**53
"""Largest whole number of a parameter: above it, float64 no longer holds every whole number."""
LARGEST_FLOAT = 1e300
SHORTEST_INTERVAL_S = 1.0
"""Least time between two events of one kind that an interval sets, given or derived: runs must end."""

TORUS, FLAT, MENU, CLUSTERS = "a torus", "a flat machine", "a machine with a partition menu", "machines of clusters"
SITE = "a site of shared nodes"
"""The kinds of machines that a policy may be for."""
EVERYWHERE = (TORUS, FLAT, MENU, CLUSTERS, SITE)
ONE_MACHINE = (TORUS, FLAT, MENU, SITE)

OWN_POLICY = r".+\.py:[A-Za-z_]\w*"
"""A policy of the user's: a Python file and a name in it."""
OWN = "own"
"""The policy of a role that stands for the user's."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of a run.

    Attributes
    ----------
    name : as written in specs and, with dashes, on the command line; carries its unit where it has one.
    kind : float, int, str or bool.
    default : the value of a configuration that does not name the parameter.
    doc : one sentence.
    group : which part of a run it belongs to (workload, machine, scheduling, failures, ...).
    choices : the valid names of a ``str`` parameter, each with a sentence; empty if any text may be valid.
    form, form_doc : regular expression of other texts that are valid beside the choices, and how messages show it.
    minimum, maximum : bounds of a number, both inclusive.
    unit : for the store's attributes.
    zero : of an interval, what 0 means: it is valid beside those of SHORTEST_INTERVAL_S and more.
    aliases : other names of choices, in small letters with dashes; a configuration has the choice's own.
    live : where a live policy that has the parameter heeds it; None: always.
    """

    name: str
    kind: type
    default: Any
    doc: str
    group: str
    choices: Mapping[str, str] = field(default_factory=dict)
    form: str = ""
    form_doc: str = ""
    minimum: float = -math.inf
    maximum: float = math.inf
    unit: str = ""
    zero: str = ""
    aliases: Mapping[str, str] = field(default_factory=dict)
    live: Condition | None = None

    def check(self, value: Any) -> Any:
        """Return ``value`` as this parameter's type, or raise InputError naming the parameter and what is valid."""
        if self.kind is bool:
            if not isinstance(value, bool):
                raise InputError(f"{self.name}: expected true or false, got {value!r}")
            return value
        if self.kind is str:
            if not isinstance(value, str):
                raise InputError(f"{self.name}: expected text, got {value!r}")
            if "\0" in value:  # no name nor path has one, and the system calls that open files refuse it otherwise
                raise InputError(f"{self.name}: expected text without null characters, got {value!r}")
            value = self._own_name(value)
            if self.choices and value not in self.choices and not (self.form and re.fullmatch(self.form, value)):
                brought = installed.names(self.name) if self.form == OWN_POLICY else {}
                if value in brought:
                    return value
                valid = (*self.choices, *brought, *([self.form_doc] if self.form else []))
                raise unknown_name(self.name.replace("_", " "), value, valid, self.name, self.aliases)
            return value
        return self._check_number(value)

    def _own_name(self, value: str) -> str:
        """Return the choice that a text names: by another name, in capital letters, or with _ for -; else the text."""
        plain = installed.plain_name(value)
        return self.aliases.get(plain, plain if plain in self.choices else value)

    def _check_number(self, value: Any) -> float | int:
        wanted = "a whole number" if self.kind is int else "a number"
        if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
            value = value.item()
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
            raise InputError(f"{self.name}: expected {wanted}, got {value!r}")
        if value == self.default:
            return self.kind(value)
        low, high = self._bounds()
        if not low <= value <= high:
            raise InputError(f"{self.name}: {_shortened(value)} is outside {self._range()}")
        if self.zero and 0 < value < SHORTEST_INTERVAL_S:
            least = f"{SHORTEST_INTERVAL_S:g} or more"
            raise InputError(f"{self.name}: {value:g} is too short (valid: 0 {self.zero}, or {least})")
        if self.kind is int and value != int(value):
            raise InputError(f"{self.name}: expected a whole number, got {value!r}")
        return self.kind(value)

    def _bounds(self) -> tuple[float, float]:
        """Return the bounds; a number is finite (but for a default that is not), a whole one exact as float."""
        largest = LARGEST_INT if self.kind is int else LARGEST_FLOAT
        return max(self.minimum, -largest), min(self.maximum, largest)

    def _range(self) -> str:
        low, high = self._bounds()
        if high in (LARGEST_INT, LARGEST_FLOAT):
            return f"the valid range, {low:g} or more (up to {'2^53' if high == LARGEST_INT else f'{high:g}'})"
        return f"the valid range {low:g} to {high:g}"


def _shortened(value: float | int) -> str:
    try:
        text = repr(value)
    except ValueError:  # Python writes no whole number of more than 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= 30 else f"{text[:20]}... ({len(text)} digits)"


@dataclass(frozen=True)
class Refusal:
    """What a policy cannot be combined with.

    Attributes
    ----------
    reads : the parameters that decide it, beside the machine and the policy's own name.
    sentence : returns what is wrong, of a run and its kind of machine and that machine's name, or "".
    """

    reads: tuple[str, ...]
    sentence: Callable[[Config, str, str], str]


@dataclass(frozen=True)
class Policy:
    """One policy of a role.

    Attributes
    ----------
    name : as the parameter of its role names it.
    doc : one sentence, with the source.
    aliases : other names that the field has for it.
    parameters : its own.
    uses : names of parameters of its role, or of others, that it heeds.
    consults : roles that it asks.
    becomes : conditions under which it does what another policy of the role does, with that policy's name.
    binds : parameter -> another one that stands for it in a run with this policy.
    machines : the kinds of machines that it is for.
    refuses : what it cannot be combined with.
    kernels : what it does, by the name of the hook of the role (``engine/hooks.py``).
    facts : what the engine must know of it before a run, by name; the role says what there is.
    begins : sets what the policy has in the state of a run that begins.
    metrics : those that it may change; where no policy of a run does, a metric is what ``Metric.without`` says.
    declares : returns the parameters that follow from the run: those that a file of the user's declares.
    role : the folder, if it is another one than that of the file.
    """

    name: str
    doc: str
    aliases: tuple[str, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    uses: tuple[Named, ...] = ()
    consults: tuple[Named, ...] = ()
    becomes: tuple[tuple[Condition, str], ...] = ()
    binds: Mapping[str, str] = field(default_factory=dict)
    machines: tuple[str, ...] = EVERYWHERE
    refuses: tuple[Refusal, ...] = ()
    kernels: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    begins: Callable[[Any, Run], None] | None = None
    metrics: tuple[Named, ...] = ()
    declares: Callable[[Run], tuple[Parameter, ...]] | None = None
    role: str = ""


@dataclass(frozen=True)
class Role:
    """What policies of one kind share.

    Attributes
    ----------
    doc : one sentence.
    selector : the parameter that names the policy, or None if the configuration does not name it.
    chooses : returns the name of the policy; the selector's value if not given.
    otherwise : the policy of a selector's value that is no policy's name, such as a file's.
    parameters : those that several policies of the role use.
    refuses : what cannot be combined, whichever policy is named.
    metrics : those that its policies may change.
    name : of the folder, if it is another one.
    policies : by name, the default first; filled by ``policies.catalogue``.
    """

    doc: str
    selector: Parameter | None = None
    chooses: Callable[[Run], str] | None = None
    otherwise: str = ""
    parameters: tuple[Parameter, ...] = ()
    refuses: tuple[Refusal, ...] = ()
    metrics: tuple[Named, ...] = ()
    name: str = ""
    policies: Mapping[str, Policy] = field(default_factory=dict)

    @cached_property
    def binds(self) -> bool:
        """Whether one of its policies lets a parameter stand for another one."""
        return any(policy.binds for policy in self.policies.values())

    def named(self, run: Run) -> str:
        """Return the name of the policy that a run names."""
        if self.chooses is not None:
            return self.chooses(run)
        if self.selector is None:
            return next(iter(self.policies))
        value = str(run[self.selector.name])
        if value in self.policies:
            return value
        return self.otherwise_of(value)

    def otherwise_of(self, value: str) -> str:
        """Return the policy that a value means which is no policy's name."""
        return OWN if self.is_own(value) else self.otherwise or value

    def is_own(self, value: str) -> bool:
        """Tell whether a value of the selector names a policy of the user's, or one that a package brings."""
        if value in self.policies or OWN not in self.policies or self.selector is None:
            return False
        return bool(re.fullmatch(OWN_POLICY, value)) or value in installed.names(self.selector.name)

    def code(self, name: str) -> int:
        """Return the number of a policy in the engine: its place, 0 for the default."""
        return list(self.policies).index(name)

    def filled(self, name: str, policies: Mapping[str, Policy]) -> Role:
        """Return the role with its policies, the default first, the others by name."""
        default = self.selector.default if self.selector is not None else ""
        ordered = {key: policies[key] for key in sorted(policies, key=lambda key: (key != default, key))}
        selector = self.selector
        if selector is not None and selector.choices is SENTENCES:
            named = {key: policy for key, policy in ordered.items() if policy.doc}
            other = {alias: key for key, policy in named.items() for alias in policy.aliases}
            selector = replace(selector, choices={key: policy.doc for key, policy in named.items()}, aliases=other)
        return replace(self, name=name, policies=ordered, selector=selector)


SENTENCES: Mapping[str, str] = {"": "the names of the policies of the role"}
"""The choices of a selector that stand for the names and sentences of the role's policies."""


def _name_of(entry: Named) -> str:
    """Return the name of what is asked, with or without a condition."""
    return entry[0] if isinstance(entry, tuple) else entry


def constant(value: str) -> Callable[[Run], str]:
    """Return what chooses the same policy always."""
    return lambda run: value


class Run:
    """A configuration as policies see it: its values, and what each policy is in it.

    It reads of the configuration only what decides something, so that who gives it can note what was read.
    """

    def __init__(
        self,
        roles: Mapping[str, Role],
        config: Config,
        root: str = "run",
        is_own_trace: Callable[[str], bool] | None = None,
    ) -> None:
        """Read a resolved configuration; ``is_own_trace`` tells of a failure log whether "auto" takes it as it is."""
        self._roles, self._config = roles, config
        self.is_own_trace = is_own_trace or (lambda name: False)
        self._bound: dict[str, str] = {}
        self._resolved: dict[str, Policy] = {}
        self._open: list[str] = []
        for role in self._asked(tuple(entry for entry in self.named(root).consults if roles[_name_of(entry)].binds)):
            self._bound.update(self.named(role).binds)

    def __getitem__(self, name: str) -> Any:
        """Return the value of a parameter, or of the one that stands for it."""
        return self._config[self._bound.get(name, name)]

    def named(self, role: str) -> Policy:
        """Return the policy that the configuration names."""
        found = self._roles[role]
        return found.policies[found.named(self)]

    def policy(self, role: str) -> Policy:
        """Return what the named policy is in this run, after it has become what it becomes."""
        if role in self._resolved:
            return self._resolved[role]
        if role in self._open:
            raise RuntimeError(f"roles that need each other: {', '.join(self._open)}")
        self._open.append(role)
        found = self._becomes(role, self.named(role))
        self._open.pop()
        self._resolved[role] = found
        return found

    def _becomes(self, role: str, found: Policy) -> Policy:
        """Return what a policy of a role is in this run."""
        while other := next((name for condition, name in found.becomes if condition(self)), ""):
            found = self._roles[role].policies[other]
        return found

    def is_(self, role: str, *names: str) -> bool:
        """Tell whether the policy of a role is one of some."""
        return self.policy(role).name in names

    def code(self, role: str) -> int:
        """Return the number of the policy of a role in the engine."""
        return self._roles[role].code(self.policy(role).name)

    def reached(self, root: str = "run") -> dict[str, Policy]:
        """Return the roles that a run asks, directly or not, with their policies."""
        found: dict[str, Policy] = {}
        waiting = [root]
        while waiting:
            role = waiting.pop()
            if role not in found:
                found[role] = self.policy(role)
                waiting += self._asked(found[role].consults)
        return found

    def _asked(self, names: tuple[Named, ...]) -> Iterator[str]:
        for entry in names:
            name, condition = entry if isinstance(entry, tuple) else (entry, None)
            if condition is None or condition(self):
                yield name

    def live(self, root: str = "run") -> frozenset[str]:
        """Return the names of the parameters that may change the run."""
        found: set[str] = set()
        for role, policy in self.reached(root).items():
            selector = self._roles[role].selector
            if selector is not None and not self._names_default(role, policy, selector):
                found.add(selector.name)
            declared = () if policy.declares is None else policy.declares(self)
            own = (p.name if p.live is None else (p.name, p.live) for p in (*policy.parameters, *declared))
            found.update(self._bound.get(name, name) for name in self._asked((*own, *policy.uses)))
        return frozenset(found)

    def metrics(self, root: str = "run") -> frozenset[str]:
        """Return the metrics that some policy of the run may change, of those that policies declare."""
        reached = self.reached(root).items()
        return frozenset(name for role, p in reached for name in self._asked((*self._roles[role].metrics, *p.metrics)))

    def _names_default(self, role: str, policy: Policy, selector: Parameter) -> bool:
        """Tell whether the named policy has become the one that the default of the selector names."""
        default = self._roles[role].policies.get(selector.default)
        named = self._roles[role].named(self)
        return default is not None and named != selector.default and policy is self._becomes(role, default)

    def idle(self) -> frozenset[str]:
        """Return the selectors whose policies do nothing, such as that of checkpoints where there are none."""
        found = ((self._roles[role].selector, policy) for role, policy in self.reached().items())
        return frozenset(one.name for one, policy in found if one is not None and self._does_nothing(policy))

    def _does_nothing(self, policy: Policy) -> bool:
        asked = list(self._asked(policy.consults))
        return not (policy.uses or policy.parameters or asked or policy.kernels or policy.facts)
