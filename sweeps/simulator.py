"""The simulator as the target of a sweep."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cache, partial
from hashlib import sha256
from operator import itemgetter
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from faultsweep.simcore.engine.machine_code import ENTRIES, is_compiled, kernel_hash
from faultsweep.simcore.engine.metrics import JOB_METRICS, MAIN, MEASURED, METRICS, job_metrics
from faultsweep.simcore.failure_sources import file_hash, is_file, is_own_trace, source_for
from faultsweep.simcore.model.machines import parse_machine
from faultsweep.simcore.model.menus import menu_hash
from faultsweep.simcore.model.nodes import site_hash
from faultsweep.simcore.outside import provided, source_of
from faultsweep.simcore.parameters import (
    COMBINED,
    MEASURING,
    OWN_PARAMETERS,
    PARAMETERS,
    check_combination,
    check_own,
    inert,
    is_own,
    known_parameters,
    own_parameters,
    own_values,
)
from faultsweep.simcore.policies.failures.excess import excess_sentence
from faultsweep.simcore.policies.failures.source import Span, unseen_sentence
from faultsweep.simcore.policies.queue_order.named import NAMING
from faultsweep.simcore.possible import impossible
from faultsweep.simcore.remembered import Remembered
from faultsweep.simcore.workloads.accounting.units import Zone
from faultsweep.simcore.workloads.demands import for_site
from faultsweep.simcore.workloads.resampling import check_resampled
from faultsweep.simcore.workloads.transforms import doubts, from_origin, largest_size, map_sizes, scale_arrivals, span
from faultsweep.sweeps.outputs import udunits
from faultsweep.sweeps.runner.progress import format_bytes
from faultsweep.sweeps.target import Config, Foresight, Known, Outcome, Output, Target

from faultsweep.errors import InputError

if TYPE_CHECKING:
    from faultsweep.simcore.model.workload import Workload

_VALUES = itemgetter(*METRICS)
_WARM_JOBS = 20
_BYTES_A_JOB = 60
"""Memory of a job of a model before it is simulated, which takes more."""
_KEPT_JOBS = 1_000_000  # of models, about 60 MB
_WORKER_BYTES = 350_000_000
"""Memory of a worker process with the compiled simulator, 270 MB measured."""
_BYTES_A_SIMULATED_JOB = 800
"""580 measured under EASY, its place in the log included."""
_ALL_JOBS = 500_000
"""Jobs that a whole log is taken to have."""
_SIZED = (
    "log",
    "machine",
    "offset",
    "num_jobs",
    "resample",
    "procs_per_node",
    "size_map",
    "meta_scheduler",
    "information_pct",
)
"""The parameters that decide whether a job of a log is larger than the machine."""


@cache
def _simulating() -> ModuleType:
    """Import the simulator; an import inside a function takes 10 us each time."""
    from faultsweep.simcore import simulate

    return simulate


@cache
def _reading() -> ModuleType:
    """Import what reads logs."""
    from faultsweep.sweeps import logs

    return logs


def _looked_at(config: Config, workload: Workload) -> tuple[dict[str, str], Workload]:
    """Return what is assumed of a log, and its jobs at the times at which they are submitted."""
    jobs = from_origin(span(workload, config["offset"], config["num_jobs"]))
    return doubts(workload, config), scale_arrivals(jobs, config["arrival_scale"])


class SimulatorTarget(Target):
    """Runs ``simcore.simulate`` on the named log; a process reads a log once."""

    name = "simulator"
    measuring = MEASURING
    compiled_by = ("machine", "finder", *OWN_PARAMETERS)
    assumed_by = (
        *("log", "timezone", "offset", "num_jobs", "estimates", "default_request_s", "procs_per_node", "arrival_scale"),
        *("failures", "failure_start", "weibull_shape", "weibull_scale_s", "mtbf_shape", "mtbf_h", "node_mtbf_h"),
        *(
            "failure_fit",
            "failure_system",
            "failure_filter_s",
            "failure_columns",
            "num_failures",
            "failures_per_day",
            "load_scale",
        ),
        *(*NAMING, "queue_order", "machine"),
    )

    def __init__(
        self,
        logs: str | Path | None = None,
        folders: Sequence[str | Path] = (),
        pinned: Mapping[str, str] | None = None,
    ) -> None:
        """Find logs in the folder ``logs`` first, if one is given.

        A relative path of a log of jobs or failures, or of a score, starts from the first of ``folders`` (that of a
        spec, say) that has the file, so that neither a store nor its keys depend on where the user, or a worker, is.
        ``pinned`` are the content hashes that a store has: the pin of a log that is not on this machine is believed, so
        that a complete store needs no logs.
        """
        from faultsweep.simcore.simulate import MODEL_VERSION

        self.logs = None if logs is None else Path(logs).resolve()
        self.folders = [Path(folder).resolve() for folder in folders] or [Path.cwd()]
        self.pinned = dict(pinned or {})
        self.parameters: Mapping[str, Any] = PARAMETERS
        self.outputs = tuple(
            Output(name, udunits(metric.unit), metric.doc, measured=name in MEASURED)
            for name, metric in METRICS.items()
        )
        self.main = MAIN
        self.version = str(MODEL_VERSION)
        self._loaded: dict[tuple[Any, ...], Any] = {}
        self._remembered = Remembered()
        self._sources: dict[tuple[str, str], str] = {}  # of the user's policies: they travel to the workers

    def __getstate__(self) -> dict[str, Any]:
        """Travel to workers without the logs read here, and with the user's parameters alone."""
        own = {name: parameter for name, parameter in self.parameters.items() if name not in PARAMETERS}
        return {**self.__dict__, "_loaded": {}, "_remembered": Remembered(), "parameters": own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the table of parameters of the process at hand."""
        self.__dict__.update(state)
        self.parameters = {**PARAMETERS, **self.parameters}

    def expect(self, values: Mapping[str, Iterable[Any]]) -> None:
        """Know the parameters, too, that the user's policies declare which a sweep names."""
        own = [(name, value) for name in OWN_PARAMETERS for value in values.get(name, ()) if is_own(name, value)]
        with provided({(name, value): self._source(name, value) for name, value in own}):
            self.parameters = {**self.parameters, **own_parameters(own)}

    def _provided(self, config: Config, may_lack: bool = False) -> AbstractContextManager[None]:
        """Have the files at hand of the user's policies that a configuration names; nothing is executed."""
        texts = {}
        for name, value in own_values(config).items():
            try:
                texts[name, value] = self._source(name, value)
            except InputError:
                if not may_lack:
                    raise
        return provided(texts)

    def inert(self, config: Config) -> frozenset[str]:
        """Return the parameters that do nothing; failure logs are looked at, as "auto" takes traces of our own."""

        with self._provided(config, may_lack=True):
            return inert(config, is_own_trace=lambda name: is_own_trace(self._failures(name)))

    def impossible(self, config: Config) -> dict[str, Known]:
        """Return the metrics that no policy of the configuration may change."""

        return {name: Known(*known) for name, known in impossible(config).items()}

    def _workload(self, config: Config) -> Any:
        logs = _reading()
        # A model's jobs depend on more than its name.
        is_model = logs.is_model(config["log"])
        named = ("log", "seed", "replicate", "offset", "num_jobs") if is_model else ("log", "timezone")
        key = tuple(config[name] for name in named)
        if key not in self._loaded:
            self._forget_old_models()
            workload = logs.load_configured({**config, "log": self._log(config["log"])}, self.logs)
            self._loaded[key] = workload if logs.is_name(config["log"]) else replace(workload, name=config["log"])
        return self._loaded[key]

    def _forget_old_models(self) -> None:
        """Drop the jobs of models that were made first, until few enough are kept; cells often have those of others."""
        made = [key for key in self._loaded if len(key) > 2]
        kept = sum(len(self._loaded[key]) for key in made)
        for key in made:
            if kept <= _KEPT_JOBS:
                break
            kept -= len(self._loaded.pop(key))

    def _log(self, name: str) -> str:
        """Return the path of a job log, or its name as it is."""
        from faultsweep.sweeps.logs import is_name

        return name if is_name(name) else self._file(name)

    def _failures(self, name: str) -> str:
        """Return the path of a failure log, or the name of a generator as it is."""

        return self._file(name) if is_file(name) and not is_own("failures", name) else name

    def _menu_file(self, name: str) -> str:
        """Return the path of a file with a menu of partitions, or the name of a machine as it is."""
        return self._file(name) if name.endswith(".toml") else name

    def _machine(self, name: str) -> Any:
        return parse_machine(self._menu_file(name))

    def _menu_hash(self, name: str) -> str:
        """Return the content hash of a site or of a machine's menu, or nothing for a machine that its name says all
        of."""
        if not name.endswith(".toml"):
            return ""
        machine = self._machine(name)
        return menu_hash(machine.menu) if machine.site is None else site_hash(machine.site)

    def _file(self, path: str) -> str:
        """Return where a file is; the place where it should be if it is nowhere."""
        path = os.path.expanduser(path)
        places = [folder / path for folder in (*self.folders, *([self.logs] if self.logs else []))]
        found = next((place for place in places if os.path.isfile(place)), None)
        looks_like_one = bool(Path(path).suffix) or len(Path(path).parts) > 1
        return str(found or (places[0] if looks_like_one else path))

    def _failures_hash(self, name: str) -> str:

        if is_own("failures", name):
            return self._source_hash("failures", name)
        return file_hash(self._failures(name))

    def _first(self, log: str) -> Any:
        """Return the workload of a log, or of a model with nothing but defaults."""
        return self._workload({name: parameter.default for name, parameter in PARAMETERS.items()} | {"log": log})

    def _source(self, name: str, value: str) -> str:
        """Return the text of the file of a user's policy; nothing is executed."""
        if (name, value) not in self._sources:
            path, _, function = value.rpartition(":")
            self._sources[name, value] = source_of(f"{self._file(path)}:{function}" if path else value, name)
        return self._sources[name, value]

    def _source_hash(self, name: str, value: str) -> str:
        """Return the hash of the file of a user's policy, or nothing for a built-in one."""
        return f"sha256:{sha256(self._source(name, value).encode()).hexdigest()}" if is_own(name, value) else ""

    def _check_own(self, name: str, value: str) -> None:
        """Raise InputError for a policy of the user's that cannot be read, executed or compiled."""
        if is_own(name, value):
            with self._provided({**dict.fromkeys(OWN_PARAMETERS, ""), name: value}):
                check_own(name, value)

    def precheck(self, values: Mapping[str, Sequence[Any]]) -> list[str]:
        """Return a sentence for every log or placement score that cannot be read, and every machine there is not."""
        checks: dict[str, Callable[[str], Any]] = {
            "machine": self._machine,
            "log": self._first,
            "timezone": lambda name: name and Zone(name),
            "failures": self._failures_hash,
            **{name: partial(self._check_own, name) for name in OWN_PARAMETERS if name != "failures"},
        }
        problems = []
        for name, check in checks.items():
            for value in values.get(name, ()):
                if self._is_absent(name, value):
                    continue
                try:
                    check(value)
                except InputError as error:
                    text = str(error)
                    problems.append(text if text.startswith(name) else f"{name}: {text}")
        return problems

    def pins(self, values: Mapping[str, Sequence[Any]]) -> dict[str, str]:
        """Return the content hashes: of logs of jobs (of a model: by its jobs), logs of failures, menus and scores."""
        hashes: dict[str, Callable[[str], str]] = {
            "log": lambda log: self._first(log).content_hash,
            "failures": self._failures_hash,
            "machine": self._menu_hash,
            **{name: partial(self._source_hash, name) for name in OWN_PARAMETERS if name != "failures"},
        }
        pins = {
            f"{kind} {name}": self.pinned[f"{kind} {name}"] if self._is_absent(kind, name) else hash_of(name)
            for kind, hash_of in hashes.items()
            for name in values.get(kind, ())
        }
        return {name: content for name, content in pins.items() if content}

    def absent(self, values: Mapping[str, Sequence[Any]]) -> list[str]:
        """Return the logs of jobs and failures that are not on this machine and whose pins are believed."""
        return [name for kind in ("log", "failures") for name in values[kind] if self._is_absent(kind, name)]

    def _is_absent(self, kind: str, name: str) -> bool:
        """Tell whether a log of the store's is not on this machine; nothing is fetched."""
        from faultsweep.sweeps.logs import find, is_model, is_name, named_log

        if (
            kind not in ("log", "failures")
            or is_own(kind, name)
            or f"{kind} {name}" not in self.pinned
            or (kind == "log" and is_model(name))
        ):
            return False
        if kind == "log" and is_name(name):
            return find(named_log(name), self.logs) is None
        return not os.path.isfile(self._file(name))

    def foresights(self) -> Sequence[Foresight]:
        """Return the checks of parameters that cannot be combined, and of jobs that are not there or too large."""
        return (
            Foresight(COMBINED, self._bad_combination),
            Foresight(_SIZED, self._bad_sizes),
            Foresight(("log", "offset", "num_jobs"), self._too_many_jobs),
        )

    def assumptions(self, config: Config, said: Container[str]) -> dict[str, str]:
        """Return what is assumed of a log of jobs, the excess of failures, that all of them are at other times, and
        names that no job has, by the log and what it is about; but for those that are said already."""
        from faultsweep.simcore.simulate import slips_of

        if self._is_absent("log", config["log"]):
            return {}
        try:
            workload = self._workload(config)
            doubted, jobs = self._remembered.of(_looked_at, config, workload)
            found = {f"{config['log']} {about}": sentence for about, sentence in doubted.items()}
            last_s, failures = float(jobs.submit_s[-1]), f"{config['log']} {config['failures']}"
            if f"{failures} excess" not in said:  # it takes a while
                found[f"{failures} excess"] = excess_sentence(config, last_s)
            found[f"{failures} unseen"] = self._unseen(config, workload, jobs)
            with self._provided(config):
                slips = slips_of(workload, config, self._machine(config["machine"]))
            found |= {f"{config['log']} {sentence}": sentence for sentence in slips}
        except InputError:  # the run says it
            return {}
        return {about: sentence for about, sentence in found.items() if sentence and about not in said}

    def _unseen(self, config: Config, log: Workload, jobs: Workload) -> str:
        """Return the sentence for a failure log that keeps its times, none of which is that of a job; "" for others."""

        name = self._failures(config["failures"])
        fit = "exact" if config["failure_fit"] == "auto" and is_own_trace(name) else config["failure_fit"]
        if fit not in ("exact", "calendar") or not is_file(name) or self._is_absent("failures", config["failures"]):
            return ""
        end_s = float((jobs.submit_s + jobs.run_s * config["load_scale"]).max())
        anywhere = {**config, "failures": name, "node_map": "rank"}  # times do not depend on the machine
        source = source_for(anywhere, 1, Span.of(log, jobs, config["arrival_scale"]))
        return unseen_sentence(source, end_s, "the time in which the jobs would run without waiting,")

    def _too_many_jobs(self, config: Config) -> str:
        """Return the sentence for more jobs of a model than memory has room for; a log has as many as it has."""
        from faultsweep.sweeps.logs import is_model

        jobs = config["offset"] + config["num_jobs"]
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if not is_model(config["log"]) or jobs * _BYTES_A_JOB <= memory:
            return ""
        return (
            f"num_jobs = {config['num_jobs']:,} needs about {format_bytes(jobs * _BYTES_A_JOB)} of memory, and this"
            f" machine has {format_bytes(memory)}"
        )

    def _bad_combination(self, config: Config) -> str:
        """Return the sentence for parameters that cannot be combined."""
        try:
            check_combination(config, self._machine(config["machine"]))
        except InputError as error:
            return str(error)
        return ""

    def _bad_sizes(self, config: Config) -> str:
        """Return the sentence for jobs of a log that are not there, or that are larger than the machine."""
        from faultsweep.sweeps.logs import is_model

        if is_model(config["log"]) or self._is_absent("log", config["log"]):
            return ""
        try:
            jobs = span(self._workload(config), config["offset"], config["num_jobs"])
            if config["resample"] != "none":
                check_resampled(jobs)
            machine = self._machine(config["machine"])
            if machine.site is not None:
                jobs = for_site(jobs, machine.site, config["size_map"], machine.name)
            largest = largest_size(config, machine.largest, machine.clusters)
            holder = "the largest cluster" if largest < machine.nodes else "the machine"
            map_sizes(jobs, largest, config["procs_per_node"], config["size_map"], machine.node_size, holder)
        except InputError as error:
            return " ".join(str(error).split())
        return ""

    def derivable(self) -> frozenset[str]:
        """Return the metrics that per-job results give."""

        return JOB_METRICS

    def from_jobs(self, jobs: Mapping[str, Any]) -> Mapping[str, float]:
        """Return them for the jobs of a run that is over."""

        return job_metrics(jobs)

    def worker_bytes(self, values: Mapping[str, Sequence[Any]]) -> int:
        """Return the memory of a worker process, from the number of jobs; a whole log counts half a million."""
        jobs = max((int(number) or _ALL_JOBS for number in values.get("num_jobs", ())), default=_ALL_JOBS)
        logs = len(values.get("log", ())) * _BYTES_A_JOB * jobs
        return _WORKER_BYTES + logs + _BYTES_A_SIMULATED_JOB * jobs

    def processor(self) -> str:
        """Return what the compiled kernels of this process depend on."""
        return kernel_hash(*ENTRIES)

    def preparation(self, config: Config) -> Hashable:
        """Return what decides which kernels a configuration uses: clusters, finders and scores have their own."""
        own = (config[name] for name in OWN_PARAMETERS if is_own(name, config[name]))
        return config["machine"].partition(":")[0], config["finder"], *own

    def preparing_note(self, configs: Sequence[Config]) -> str:
        """Return what the user is told; of the compiler only where it has something to compile."""
        engines = {config["machine"].startswith("clusters:") for config in configs}
        compiling = "" if all(map(is_compiled, engines)) else " (the simulator is compiled, which takes about a minute)"
        return super().preparing_note(configs) + compiling

    def warm(self, config: Config) -> None:
        """Compile the kernels, or load them from the disk, with a few jobs of this configuration."""
        few = {"num_jobs": min(config["num_jobs"] or _WARM_JOBS, _WARM_JOBS), "resample": "none"}
        self.simulate({**config, **few})

    def simulate(self, config: Config, events: bool = False, trace: bool = False) -> Any:
        """Simulate one configuration and return the whole ``Run``."""
        with self._provided(config):
            return self._simulate(config, events, trace)

    def _simulate(self, config: Config, events: bool, trace: bool) -> Any:
        parameters = {**config}
        for name in (parameters.keys() - known_parameters(config).keys()) | {"log"}:
            del parameters[name]
        parameters["failures"] = self._failures(config["failures"])
        parameters["machine"] = self._menu_file(config["machine"])
        run = _simulating().simulate_configuration
        return run(self._workload(config), parameters, self._remembered, events=events, trace=trace)

    def outcome(self, run: Any, keep_jobs: bool = False) -> Outcome:
        """Return what the store keeps of a run."""
        return Outcome(list(_VALUES(run.metrics)), run.status == "truncated", run.jobs if keep_jobs else None)

    def run(self, config: Config, keep_jobs: bool = False) -> Outcome:
        """Simulate one configuration."""
        return self.outcome(self.simulate(config), keep_jobs)
