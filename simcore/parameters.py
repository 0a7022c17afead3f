"""Every parameter of a run, in one table: type, default, unit, valid values, and when it does nothing.

The command line, the specs, the store's coordinates and the documentation are all made from this table. A configuration
is a plain mapping from parameter names to values; parameters that it does not name have their defaults.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from faultsweep.simcore.registry import (
    AGENTS,
    ALIASES,
    BANDWIDTHS,
    BUCKET_JOBS,
    CHECKPOINTS,
    CLUSTER_SCHEDULERS,
    ERROR_DIRECTIONS,
    ESTIMATES,
    EVENT_ORDERS,
    FAILURE_FITS,
    FAILURE_STARTS,
    FINDERS,
    META_SCHEDULERS,
    NODE_CHOICES,
    NODE_MAPS,
    PARTITION_FAILURES,
    PARTITIONINGS,
    PLACEMENTS,
    QUEUE_ORDERS,
    QUEUES,
    RECOVERIES,
    RECOVERY_MIXES,
    REPAIRS,
    RESAMPLES,
    SCHEDULERS,
    SIZE_MAPS,
    SPLITS,
    TRUNK_OUTAGES,
)

from faultsweep.errors import InputError, unknown_name

Config = Mapping[str, Any]

FORESEEN = ("exact", "bucket")  # checkpoints that failures known beforehand call for
MIX_FORM = PRICE_FORM = r"[0-9.eE+-]+(:[0-9.eE+-]+){4}"  # five numbers, one for each recovery option A to E
SCORE_FORM = r".+\.py:[A-Za-z_]\w*"  # a placement score of the user's: a Python file and a function in it
ENDLESS_FAILURES = ("weibull", "weibull-copula", "mtbf")  # the generators; "bursts" makes a log


LARGEST_INT = 2**53
"""Largest whole number of a parameter: above it, float64 no longer holds every whole number."""
LARGEST_FLOAT = 1e300
SHORTEST_INTERVAL_S = 1.0
"""Least time between two events of one kind that an interval sets, given or derived: runs must end."""


def _never(config: Config) -> bool:
    return False


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
    inert : tells, of a resolved configuration, whether the parameter does nothing there (MODEL, section 10).
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
    inert: Callable[[Config], bool] = _never

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
            value = ALIASES.get(self.name, {}).get(value.lower(), value)
            if self.choices and value not in self.choices and not (self.form and re.fullmatch(self.form, value)):
                valid = (*self.choices, *([self.form_doc] if self.form else []))
                raise unknown_name(self.name.replace("_", " "), value, valid, where=self.name)
            return value
        return self._check_number(value)

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


def _is(name: str, *values: Any) -> Callable[[Config], bool]:
    return lambda config: config[name] in values


def _is_not(name: str, *values: Any) -> Callable[[Config], bool]:
    return lambda config: config[name] not in values


def _is_flat(config: Config) -> bool:
    return not config["machine"].startswith("torus:")


def has_clusters(config: Config) -> bool:
    """Tell whether the machine is clusters joined by trunks."""
    return bool(config["machine"].startswith("clusters:"))


def _no_clusters(config: Config) -> bool:
    return not has_clusters(config)


def co_allocates(config: Config) -> bool:
    """Tell whether any job may run over several clusters; if not, no trunk carries anything."""
    meta = config["meta_scheduler"]
    informed = meta == "bandwidth-aware" and config["information_pct"] > 0
    return has_clusters(config) and (meta == "naive" or informed)


def _never_spans(config: Config) -> bool:
    return not co_allocates(config)


def heeds_statements(config: Config) -> bool:
    """Tell whether what jobs state of their bandwidth makes a difference."""
    heeds = config["meta_scheduler"] == "bandwidth-aware" or config["agent"] == "ctmr"
    return co_allocates(config) and heeds


def _no_information(config: Config) -> bool:
    heeds = config["meta_scheduler"] == "bandwidth-aware" or (co_allocates(config) and config["agent"] == "ctmr")
    return not has_clusters(config) or not heeds


def _no_estimate_error(config: Config) -> bool:
    return not heeds_statements(config) or config["information_pct"] == 0


def _no_agent(config: Config) -> bool:
    return not co_allocates(config) or config["agent"] == "none"


def _not_ctmr(config: Config) -> bool:
    return not co_allocates(config) or config["agent"] != "ctmr"


def _nothing_communicates(config: Config) -> bool:
    return not co_allocates(config) or config["ppbw_mbps"] == 0


def _no_mesh(config: Config) -> bool:
    cut = config["partitioning"] == "minimum-cut"  # minds the mesh also where nothing communicates
    return not co_allocates(config) or (_nothing_communicates(config) and not cut)


def _no_trunk_failures(config: Config) -> bool:
    return not co_allocates(config) or config["trunk_mtbf_h"] == 0


def _no_cluster_draws(config: Config) -> bool:
    """Tell whether nothing is drawn that only clusters need."""
    if not has_clusters(config):
        return True
    if config["split"] == "random" and "+" in config["machine"]:
        return False
    if not co_allocates(config):
        return True
    errs = config["estimate_error_pct"] > 0 and not _no_estimate_error(config)
    some = 0 < config["information_pct"] < 100 and not _no_information(config)
    drawn = config["ppbw_distribution"] != "constant" and config["ppbw_mbps"] > 0
    return not (errs or some or drawn or config["trunk_mtbf_h"] > 0)


def _no_growth_limit(config: Config) -> bool:
    return _is_flat(config) or config["scheduler"] not in ("backfill", "backfill+migration", "conservative")


def _no_prediction(config: Config) -> bool:
    return _is_flat(config) or config["placement"] == "mfp" or config["failures"] == "none"


def _no_reports(config: Config) -> bool:
    """Tell whether the predictor of a built-in rule reports nothing, or nothing that counts."""
    if config["placement"] == "tie-breaking":
        return bool(config["accuracy"] == 0 and config["false_positive_rate"] == 0)
    nothing = config["recall"] == 0 and config["false_positive_rate"] == 0
    return bool(config["placement"] == "balancing" and (config["accuracy"] == 0 or nothing))


def _is_mfp(config: Config) -> bool:
    """Tell whether the placement rule does what ``mfp`` does."""
    built_in = config["placement"] in PLACEMENTS
    return _is_flat(config) or (built_in and (config["failures"] == "none" or _no_reports(config)))


def recall_of(config: Config) -> float:
    """Return the probability that the predictor reports a node that will fail."""
    breaks_ties = config["placement"] == "tie-breaking" and not _is_flat(config)
    return float(config["accuracy"] if breaks_ties else config["recall"])


def _asks_risk(config: Config) -> bool:
    """Tell whether checkpoints heed the predictor."""
    return config["checkpoint"] == "risk" and not saves_nothing(config)


def _places_by_reports(config: Config) -> bool:
    """Tell whether the placement rule heeds the predictor."""
    return not (_no_prediction(config) or _no_reports(config))


def _no_recall(config: Config) -> bool:
    asked = _places_by_reports(config) or _asks_risk(config)
    return not asked or (config["placement"] == "tie-breaking" and not _is_flat(config))


def _no_false_positives(config: Config) -> bool:
    weightless = config["placement"] == "balancing" and config["accuracy"] == 0
    return (_no_prediction(config) or weightless) and (config["checkpoint"] != "risk" or no_failures(config))


def _no_precision(config: Config) -> bool:
    return not (_places_by_reports(config) or _asks_risk(config)) or recall_of(config) == 0


def _no_migration(config: Config) -> bool:
    return _is_flat(config) or "migration" not in config["scheduler"]


def nothing_random(config: Config) -> bool:
    """Tell whether no random number is drawn: the jobs are those of a log, and so are estimates and failures."""
    from faultsweep.simcore.workloads.models import is_model

    if is_model(config["log"]) or config["estimates"] == "f-model" or config["resample"] != "none":
        return False
    if not _no_cluster_draws(config):
        return False
    if not no_recovery(config) or (config["queue_order"] == "random" and not has_clusters(config)):
        return False
    if config["node_choice"] == "random" and not _any_node_will_do(config):
        return False
    return no_failures(config) or (_no_random_failures(config) and _no_coins(config))


def _no_random_failures(config: Config) -> bool:
    """Tell whether the failures are those of a file, each at its time and place."""
    counted = config["num_failures"] >= 0 or config["failures_per_day"] >= 0
    fixed = config["failure_fit"] == "exact" and config["node_map"] in ("identity", "rank") and not counted
    return config["failures"] == "given" or (fixed and not _no_failure_file(config))


def _no_coins(config: Config) -> bool:
    """Tell whether no predictor throws coins."""
    if not (_places_by_reports(config) or _asks_risk(config)):
        return True
    recall = recall_of(config)
    certain = recall in (0, 1) and config["false_positive_rate"] in (0, 1)
    return certain and (config["precision"] == 1 or recall == 0)


def _is_failure_log(config: Config) -> bool:
    return config["failures"] not in ("none", *ENDLESS_FAILURES)


def no_failures(config: Config) -> bool:
    """Tell whether a configuration asks for no failures: then no predictor is asked either."""
    if _is_failure_log(config):
        return config["num_failures"] == 0 or config["failures_per_day"] == 0
    return config["failures"] == "none"


def _any_node_will_do(config: Config) -> bool:
    """Tell whether it makes no difference which free nodes a job gets, or its partition decides."""
    return not config["machine"].startswith("flat:") or no_failures(config)


def _no_moves(config: Config) -> bool:
    return _any_node_will_do(config) or config["node_choice"] != "lff" or not config["lff_moves"]


def saves_nothing(config: Config) -> bool:
    """Tell whether no job ever makes a checkpoint; then none asks for one either."""
    policy = config["checkpoint"]
    if policy in ("none", "periodic"):
        return bool(policy == "none")
    if policy in ("young", "daly") and config["checkpoint_mtbf_h"] > 0:
        return False
    unheard = recall_of(config) == 0 and config["false_positive_rate"] == 0
    return no_failures(config) or (policy == "risk" and (config["accuracy"] == 0 or unheard))


def _no_predictor(config: Config) -> bool:
    """Tell whether neither a placement rule nor a checkpoint policy heeds predicted failures."""
    return _no_prediction(config) and (config["checkpoint"] != "risk" or no_failures(config))


def _no_partition_failure(config: Config) -> bool:
    placed = config["placement"] != "tie-breaking" and not _no_prediction(config)
    return not placed and (config["checkpoint"] != "risk" or saves_nothing(config))


def _not_bucket(config: Config) -> bool:
    return config["checkpoint"] != "bucket" or saves_nothing(config)


def _no_failure_log(config: Config) -> bool:
    return not _is_failure_log(config)


def _no_failure_file(config: Config) -> bool:
    return config["failures"] in ("none", "bursts", *ENDLESS_FAILURES)


def no_recovery(config: Config) -> bool:
    """Tell whether killed jobs return to the place of their arrival, and no job has a group, an option or a charge."""
    return bool(config["recovery"] == "arrival")


def recovers_nothing(config: Config) -> bool:
    """Tell whether no job ever recovers from a failure."""
    return no_recovery(config) or no_failures(config)


def _unpaid(config: Config) -> bool:
    return no_recovery(config) or config["recovery"] == "manual" or not config["credits"]


def _nobody(config: Config, option: str) -> bool:
    """Tell whether no job ever gets a recovery option."""
    case = config["recovery"]
    asked = case == "mix" or case == f"all-{option}" or (case == "manual" and option == "a")
    return recovers_nothing(config) or not (asked or (option == "a" and not _unpaid(config)))


def _no_manual_delay(config: Config) -> bool:
    return _nobody(config, "a")


def _no_random_delay(config: Config) -> bool:
    return _no_manual_delay(config) or config["manual_delay_h"] == 0


def _has_no_age(config: Config) -> bool:
    """Tell whether nothing depends on when the times between failures began."""
    return config["failures"] != "mtbf" or config["mtbf_shape"] == 1


def _no_repair_time(config: Config) -> bool:
    return config["failures"] != "mtbf" or config["down_time_s"] >= 0


def _no_random_repair(config: Config) -> bool:
    return _no_repair_time(config) or config["mttr_h"] == 0


def _no_random_trunk_repair(config: Config) -> bool:
    return _no_trunk_failures(config) or config["trunk_down_s"] == 0


def _no_lognormal_repair(config: Config) -> bool:
    of_nodes = not _no_random_repair(config) and config["repair_distribution"] == "lognormal"
    # where failures alone are drawn there are no trunks
    of_trunks = "trunk_repair_distribution" in config and (
        config["trunk_repair_distribution"] == "lognormal" and not _no_random_trunk_repair(config)
    )
    return not (of_nodes or of_trunks)


def _table(*rows: Parameter) -> dict[str, Parameter]:
    return {row.name: row for row in rows}


PARAMETERS: dict[str, Parameter] = _table(
    # workload
    Parameter("log", str, "", "Named log, path of a log or of a workload model.", "workload"),
    Parameter("offset", int, 0, "Valid jobs of the log to pass over.", "workload", minimum=0, unit="jobs"),
    Parameter(
        "num_jobs", int, 0, "Valid jobs of the log to use; 0 uses all of them.", "workload", minimum=0, unit="jobs"
    ),
    Parameter(
        "resample",
        str,
        "none",
        "Whether each replicate has other jobs of the log's users.",
        "workload",
        choices=RESAMPLES,
    ),
    Parameter(
        "load_scale",
        float,
        1.0,
        "The load scale c: multiplies run times and estimates.",
        "workload",
        minimum=1e-9,
        inert=lambda config: config["target_utilisation"] > 0,
    ),
    Parameter(
        "target_utilisation",
        float,
        0.0,
        "Load that the jobs used offer the machine, by scaling run times and estimates; 0: not given.",
        "workload",
        minimum=0,
        maximum=1000,
    ),
    Parameter(
        "arrival_scale", float, 1.0, "Divides the gaps between submissions.", "workload", minimum=1e-9, maximum=1e9
    ),
    Parameter(
        "procs_per_node",
        int,
        0,
        "Processors of a node of the log; 0 takes the header's MaxProcs / MaxNodes.",
        "workload",
        minimum=0,
    ),
    Parameter(
        "size_map", str, "exact", "What happens to sizes of a log of another machine.", "workload", choices=SIZE_MAPS
    ),
    Parameter("estimates", str, "actual", "What the scheduler believes of run times.", "workload", choices=ESTIMATES),
    Parameter(
        "estimate_factor",
        float,
        1.0,
        "f of the f-model: estimates are uniform in [actual, f x actual].",
        "workload",
        minimum=1.0,
        inert=_is_not("estimates", "f-model"),
    ),
    Parameter(
        "default_request_s",
        float,
        0.0,
        "Requested time of jobs that the log has none of (unlimited ones); 0: their run time.",
        "workload",
        minimum=0,
        unit="s",
        inert=_is("estimates", "actual", "f-model"),
    ),
    Parameter(
        "kill_at_estimate",
        bool,
        False,
        "Whether a job that reaches its estimate is killed, as on real systems.",
        "workload",
        inert=_is("estimates", "actual", "f-model"),
    ),
    Parameter("seed", int, 0, "Seed of everything random in a run.", "workload", minimum=0, inert=nothing_random),
    Parameter(
        "replicate", int, 0, "Number of the replicate under one seed.", "workload", minimum=0, inert=nothing_random
    ),
    # machine and scheduling
    Parameter(
        "machine",
        str,
        "torus:4x4x8",
        "torus:XxYxZ, flat:N, clusters:N+N+..., midplanes:N, or a partition menu FILE.toml.",
        "machine",
    ),
    Parameter(
        "scheduler",
        str,
        "backfill",
        "Queue discipline; first-fit, fcfs and backfill on clusters.",
        "scheduling",
        choices={**CLUSTER_SCHEDULERS, **SCHEDULERS},
    ),
    Parameter(
        "queue_order",
        str,
        "fcfs",
        "Order of the queue: by arrival, by a utility that grows with the wait (wfp), or by a priority of each job.",
        "scheduling",
        choices=QUEUE_ORDERS,
    ),
    Parameter(
        "event_order",
        str,
        "instant",
        "Order of simultaneous events and scheduling passes.",
        "scheduling",
        choices=EVENT_ORDERS,
    ),
    Parameter(
        "start_delay_s", float, 0.0, "Delay between being scheduled and starting.", "scheduling", minimum=0, unit="s"
    ),
    Parameter(
        "growth_limit",
        int,
        1,
        "I: nodes by which backfilling may grow a job to fit a free box.",
        "scheduling",
        minimum=0,
        unit="nodes",
        inert=_no_growth_limit,
    ),
    Parameter(
        "migration_free_frac",
        float,
        0.1,
        "FN_tor: migration needs free / total nodes of at least this.",
        "scheduling",
        minimum=0,
        maximum=1,
        inert=_no_migration,
    ),
    Parameter(
        "migration_mfp_frac",
        float,
        0.7,
        "FN_max: migration needs largest free partition / free nodes of at most this.",
        "scheduling",
        minimum=0,
        maximum=1,
        inert=_no_migration,
    ),
    Parameter(
        "migration_cost_s",
        float,
        0.0,
        "Time that each migration adds to a job.",
        "scheduling",
        minimum=0,
        unit="s",
        inert=_no_migration,
    ),
    Parameter(
        "placement",
        str,
        "mfp",
        "Which free box a job takes: mfp leaves the largest free partition, balancing and tie-breaking heed predicted "
        "failures; or FILE.py:FUNCTION, a score of your own.",
        "scheduling",
        choices=PLACEMENTS,
        form=SCORE_FORM,
        form_doc="FILE.py:FUNCTION",
        inert=_is_mfp,
    ),
    Parameter(
        "accuracy",
        float,
        0.0,
        "a: confidence (balancing) or accuracy (tie-breaking) of the failure predictor.",
        "scheduling",
        minimum=0,
        maximum=1,
        inert=_no_predictor,
    ),
    Parameter(
        "partition_failure",
        str,
        "product",
        "How the failure of a partition follows from its nodes': 1 - product of their survivals, or their maximum.",
        "scheduling",
        choices=PARTITION_FAILURES,
        inert=_no_partition_failure,
    ),
    Parameter(
        "recall",
        float,
        1.0,
        "Probability that the predictor reports a node that will fail (under tie-breaking that is the accuracy).",
        "scheduling",
        minimum=0,
        maximum=1,
        inert=_no_recall,
    ),
    Parameter(
        "false_positive_rate",
        float,
        0.0,
        "Probability that the predictor reports a node that will not fail.",
        "scheduling",
        minimum=0,
        maximum=1,
        inert=_no_false_positives,
    ),
    Parameter(
        "precision",
        float,
        1.0,
        "Share of true reports, the other way to say the false positives; 1: as false_positive_rate says.",
        "scheduling",
        minimum=0.001,
        maximum=1,
        inert=_no_precision,
    ),
    Parameter(
        "finder",
        str,
        "columns",
        "How free boxes are found; all finders give the same schedule, in different times.",
        "scheduling",
        choices=FINDERS,
        inert=lambda config: _is_flat(config) or not config["time_scheduling"],
    ),
    # failures
    Parameter(
        "failures",
        str,
        "none",
        "none, the path of a failure log, or a generator: weibull, weibull-copula, mtbf, bursts.",
        "failures",
        inert=no_failures,
    ),
    Parameter(
        "num_failures",
        int,
        -1,
        "Failures of a log in the span of the whole job log, in proportion if only a part is used; -1: not given.",
        "failures",
        minimum=-1,
        inert=_no_failure_log,
    ),
    Parameter(
        "failures_per_day",
        float,
        -1.0,
        "Failures of a log per day, the other way to say num_failures; -1: not given.",
        "failures",
        minimum=-1,
        unit="1/d",
        inert=_no_failure_log,
    ),
    Parameter(
        "failure_fit",
        str,
        "auto",
        "How a failure log is brought to the span of the jobs; auto: exact for a trace of our own, else scale.",
        "failures",
        choices=FAILURE_FITS,
        inert=_no_failure_log,
    ),
    Parameter(
        "node_map",
        str,
        "auto",
        "How nodes of a failure log become the machine's; auto: identity if the machines agree, else permutation.",
        "failures",
        choices=NODE_MAPS,
        inert=_no_failure_log,
    ),
    Parameter(
        "failure_system",
        int,
        0,
        "System of a LANL file, or platform of a Failure Trace Archive table; 0: the only one.",
        "failures",
        minimum=0,
        inert=_no_failure_file,
    ),
    Parameter(
        "failure_filter_s",
        float,
        300.0,
        "Blue Gene/L RAS lines of a midplane at most this far apart are one failure.",
        "failures",
        minimum=0,
        unit="s",
        inert=_no_failure_file,
    ),
    Parameter(
        "down_time_s",
        float,
        -1.0,
        "Down time of every failure; -1: the source's own (a log's, else 0; 120 s for weibull; mttr_h for mtbf).",
        "failures",
        minimum=-1,
        unit="s",
        inert=_is("failures", "none"),
    ),
    Parameter(
        "weibull_shape",
        float,
        0.85,
        "Shape beta of the times between failures of weibull and weibull-copula.",
        "failures",
        minimum=0.05,
        maximum=20,
        inert=_is_not("failures", "weibull", "weibull-copula"),
    ),
    Parameter(
        "weibull_scale_s",
        float,
        18_000.0,
        "Scale eta of the times between failures of weibull and weibull-copula.",
        "failures",
        minimum=1e-3,
        maximum=1e9,
        unit="s",
        inert=_is_not("failures", "weibull", "weibull-copula"),
    ),
    Parameter(
        "burst_window",
        int,
        2,
        "W: failures in a segment within which weibull orders its times between failures; even, 2 is uncorrelated.",
        "failures",
        minimum=2,
        maximum=65536,
        inert=_is_not("failures", "weibull"),
    ),
    Parameter(
        "copula_rho",
        float,
        0.5,
        "Lag-one correlation of the Gaussian process behind weibull-copula; 0 is uncorrelated.",
        "failures",
        minimum=-0.99,
        maximum=0.99,
        inert=_is_not("failures", "weibull-copula"),
    ),
    Parameter(
        "zipf_alpha",
        float,
        0.01,
        "Skewness alpha of the nodes that fail under weibull and weibull-copula; 0 is uniform, node 0 fails most.",
        "failures",
        minimum=0,
        maximum=20,
        inert=_is_not("failures", "weibull", "weibull-copula"),
    ),
    Parameter(
        "mtbf_h",
        float,
        0.0,
        "Mean time between failures of the whole machine under mtbf; 0: not given.",
        "failures",
        minimum=0,
        maximum=1e7,
        unit="h",
        inert=_is_not("failures", "mtbf"),
    ),
    Parameter(
        "node_mtbf_h",
        float,
        0.0,
        "Mean time between failures of each node under mtbf; 0: not given.",
        "failures",
        minimum=0,
        maximum=1e7,
        unit="h",
        inert=_is_not("failures", "mtbf"),
    ),
    Parameter(
        "mtbf_shape",
        float,
        0.7,
        "Weibull shape of the times between failures of mtbf; 1 is exponential.",
        "failures",
        minimum=0.05,
        maximum=20,
        inert=_is_not("failures", "mtbf"),
    ),
    Parameter(
        "failure_start",
        str,
        "stationary",
        "How the times between failures of mtbf begin.",
        "failures",
        choices=FAILURE_STARTS,
        inert=_has_no_age,
    ),
    Parameter(
        "mttr_h", float, 1.0, "Mean time to repair of mtbf.", "failures", minimum=0, unit="h", inert=_no_repair_time
    ),
    Parameter(
        "repair_distribution",
        str,
        "constant",
        "Distribution of the times to repair of mtbf.",
        "failures",
        choices=REPAIRS,
        inert=_no_random_repair,
    ),
    Parameter(
        "repair_sigma",
        float,
        1.94,
        "Standard deviation of the logarithm of lognormal repair times (1.94: mean 355 min, median 54 min).",
        "failures",
        minimum=0,
        maximum=5,
        inert=_no_lognormal_repair,
    ),
    # node choice
    Parameter(
        "node_choice",
        str,
        "first-fit",
        "Which free nodes of a flat machine a job gets: the lowest, those with the least failures so far (lff), ...",
        "scheduling",
        choices=NODE_CHOICES,
        inert=_any_node_will_do,
    ),
    Parameter(
        "lff_moves",
        bool,
        True,
        "Whether lff moves running jobs to safer nodes when a job ends.",
        "scheduling",
        inert=lambda config: _any_node_will_do(config) or config["node_choice"] != "lff",
    ),
    Parameter(
        "move_threshold",
        int,
        1,
        "A job moves from one node to another if their numbers of failures differ by more than this.",
        "scheduling",
        minimum=0,
        inert=_no_moves,
    ),
    Parameter(
        "move_cost_s",
        float,
        300.0,
        "Time that a move to safer nodes takes, a checkpoint and a restart.",
        "scheduling",
        minimum=0,
        maximum=1e9,
        unit="s",
        inert=_no_moves,
    ),
    # checkpoints
    Parameter(
        "checkpoint",
        str,
        "none",
        "When a running job saves its work.",
        "checkpoints",
        choices=CHECKPOINTS,
        inert=saves_nothing,
    ),
    Parameter(
        "checkpoint_cost_s",
        float,
        300.0,
        "Time that a checkpoint takes, during which the job does not work.",
        "checkpoints",
        minimum=0,
        maximum=1e9,
        unit="s",
        inert=_is("checkpoint", "none"),
    ),
    Parameter(
        "checkpoint_interval_s",
        float,
        7200.0,
        "Work between two checkpoints (periodic), or between two questions whether one pays (risk).",
        "checkpoints",
        minimum=SHORTEST_INTERVAL_S,
        unit="s",
        inert=_is_not("checkpoint", "periodic", "risk"),
    ),
    Parameter(
        "checkpoint_mtbf_h",
        float,
        0.0,
        "Mean time between failures of the machine that young and daly reckon with; 0: as observed up to the start.",
        "checkpoints",
        minimum=0,
        maximum=1e7,
        unit="h",
        inert=_is_not("checkpoint", "young", "daly"),
    ),
    Parameter(
        "bucket_s",
        float,
        3600.0,
        "Length of a bucket: it is known beforehand whether one will contain a failure.",
        "checkpoints",
        minimum=SHORTEST_INTERVAL_S,
        unit="s",
        inert=_not_bucket,
    ),
    Parameter(
        "bucket_jobs",
        str,
        "all",
        "Which jobs a bucket with a failure checkpoints.",
        "checkpoints",
        choices=BUCKET_JOBS,
        inert=_not_bucket,
    ),
    Parameter(
        "bucket_repeat_s",
        float,
        0.0,
        "Interval of further checkpoints within a bucket; 0: once, at its start.",
        "checkpoints",
        minimum=0,
        unit="s",
        inert=_not_bucket,
    ),
    Parameter(
        "bucket_long_s",
        float,
        300.0,
        "How long a job must have run to be a long one.",
        "checkpoints",
        minimum=0,
        unit="s",
        inert=lambda config: _not_bucket(config) or config["bucket_jobs"] != "long",
    ),
    Parameter(
        "bucket_biggest",
        int,
        1,
        "k: how many of the biggest jobs are checkpointed.",
        "checkpoints",
        minimum=1,
        unit="jobs",
        inert=lambda config: _not_bucket(config) or config["bucket_jobs"] != "biggest",
    ),
    Parameter(
        "restart_cost_s",
        float,
        0.0,
        "Time that a job pauses at its start because a failure has killed it before.",
        "checkpoints",
        minimum=0,
        maximum=1e9,
        unit="s",
        inert=lambda config: no_failures(config) and _no_trunk_failures(config),
    ),
    # clusters
    Parameter(
        "split",
        str,
        "random",
        "Which cluster's queue a job is submitted to: drawn by size, in turn, by its user, or by laying consecutive "
        "parts of the log, one for each cluster, over each other (overlay).",
        "clusters",
        choices=SPLITS,
        inert=_no_clusters,
    ),
    Parameter(
        "meta_scheduler",
        str,
        "bandwidth-aware",
        "Where a job may start: in its own cluster only, whole in any, or over several: always, or if what it states "
        "fits the trunks.",
        "clusters",
        choices=META_SCHEDULERS,
        inert=_no_clusters,
    ),
    Parameter(
        "queues",
        str,
        "local",
        "Whether the queue discipline orders each cluster's queue, or all of them as one (global).",
        "clusters",
        choices=QUEUES,
        inert=lambda config: _no_clusters(config) or config["scheduler"] == "first-fit",
    ),
    Parameter(
        "partitioning",
        str,
        "largest-first",
        "How a job is divided over clusters: those with most free nodes first, or so that the trunks carry least.",
        "clusters",
        choices=PARTITIONINGS,
        inert=_never_spans,
    ),
    Parameter(
        "trunk_mbps",
        float,
        1000.0,
        "Capacity of the trunk of a cluster, each way, unless the machine's name gives its own (100@2500).",
        "clusters",
        minimum=1e-6,
        maximum=1e12,
        unit="Mbit/s",
        inert=_never_spans,
    ),
    Parameter(
        "link_mbps",
        float,
        1000.0,
        "Speed of a node's link: no job needs more bandwidth per processor.",
        "clusters",
        minimum=1e-6,
        maximum=1e12,
        unit="Mbit/s",
        inert=_nothing_communicates,
    ),
    Parameter(
        "ppbw_mbps",
        float,
        300.0,
        "Mean bandwidth that a job needs per processor (PPBW).",
        "clusters",
        minimum=0,
        maximum=1e12,
        unit="Mbit/s",
        inert=_never_spans,
    ),
    Parameter(
        "ppbw_distribution",
        str,
        "uniform",
        "Distribution of the jobs' bandwidths per processor.",
        "clusters",
        choices=BANDWIDTHS,
        inert=_nothing_communicates,
    ),
    Parameter(
        "ppbw_spread_pct",
        float,
        50.0,
        "Half the width of the uniform distribution, of its mean.",
        "clusters",
        minimum=0,
        maximum=100,
        unit="%",
        inert=lambda config: _nothing_communicates(config) or config["ppbw_distribution"] != "uniform",
    ),
    Parameter(
        "communication_share",
        float,
        0.5,
        "Share of the run time on one cluster that is communication, T_C / (T_P + T_C).",
        "clusters",
        minimum=0,
        maximum=1,
        inert=_nothing_communicates,
    ),
    Parameter(
        "mesh_share",
        float,
        0.5,
        "Share of the bandwidth that goes to neighbours on a 2-D mesh; the rest goes to all.",
        "clusters",
        minimum=0,
        maximum=1,
        inert=_no_mesh,
    ),
    Parameter(
        "estimate_error_pct",
        float,
        0.0,
        "Largest error of the bandwidth that a job states, uniform, of the true one.",
        "clusters",
        minimum=0,
        maximum=100,
        unit="%",
        inert=_no_estimate_error,
    ),
    Parameter(
        "error_direction",
        str,
        "both",
        "Whether stated bandwidths err to both sides, or all below or all above the true ones.",
        "clusters",
        choices=ERROR_DIRECTIONS,
        inert=lambda config: _no_estimate_error(config) or config["estimate_error_pct"] == 0,
    ),
    Parameter(
        "information_pct",
        float,
        100.0,
        "Share of the jobs that state their bandwidth at all; bandwidth-aware co-allocation takes no others.",
        "clusters",
        minimum=0,
        maximum=100,
        unit="%",
        inert=_no_information,
    ),
    Parameter(
        "agent",
        str,
        "none",
        "What mends saturated trunks: nothing, the agent that checkpoints jobs which understated their bandwidth "
        "(ctmr), or one that takes any job.",
        "clusters",
        choices=AGENTS,
        inert=_never_spans,
    ),
    Parameter(
        "agent_interval_s",
        float,
        300.0,
        "How long after a look at a saturated trunk that changed nothing the agent looks again; 0: not by itself.",
        "clusters",
        minimum=0,
        maximum=1e9,
        unit="s",
        inert=_no_agent,
    ),
    Parameter(
        "overhead_s",
        float,
        720.0,
        "Time that a checkpoint of the agent's (half) and the restart from it (half) take.",
        "clusters",
        minimum=0,
        maximum=1e9,
        unit="s",
        inert=_no_agent,
    ),
    Parameter(
        "overhead_known",
        bool,
        True,
        "Whether the ctmr agent knows overhead_s; if not, it reckons with assumed_overhead_s.",
        "clusters",
        inert=_not_ctmr,
    ),
    Parameter(
        "assumed_overhead_s",
        float,
        1800.0,
        "What the ctmr agent takes an unknown overhead for.",
        "clusters",
        minimum=0,
        maximum=1e9,
        unit="s",
        inert=lambda config: _not_ctmr(config) or config["overhead_known"],
    ),
    Parameter(
        "cp_frac",
        float,
        0.04,
        "CP_frac: the ctmr agent takes a job only if the overhead is below this share of its remaining time.",
        "clusters",
        minimum=0,
        maximum=1e9,
        inert=_not_ctmr,
    ),
    Parameter(
        "trunk_mtbf_h",
        float,
        0.0,
        "Mean time between failures of each trunk, exponential; 0: trunks do not fail.",
        "clusters",
        minimum=0,
        maximum=1e7,
        unit="h",
        inert=_never_spans,
    ),
    Parameter(
        "trunk_down_s",
        float,
        3600.0,
        "Mean down time of a trunk that fails.",
        "clusters",
        minimum=0,
        maximum=1e9,
        unit="s",
        inert=_no_trunk_failures,
    ),
    Parameter(
        "trunk_repair_distribution",
        str,
        "constant",
        "Distribution of the down times of trunks; a lognormal one has repair_sigma.",
        "clusters",
        choices=REPAIRS,
        inert=_no_random_trunk_repair,
    ),
    Parameter(
        "trunk_outage",
        str,
        "kill",
        "What the failure of a trunk does to the jobs that need it: they are killed, or wait until it is up.",
        "clusters",
        choices=TRUNK_OUTAGES,
        inert=_no_trunk_failures,
    ),
    # recovery
    Parameter(
        "recovery",
        str,
        "arrival",
        "What happens to a killed job: back to the place of its arrival, resubmission by hand (manual), the option A "
        "to E that its group calls for (mix), or one option for all jobs.",
        "recovery",
        choices=RECOVERIES,
        inert=lambda config: no_failures(config) and not config["credits"],
    ),
    Parameter(
        "recovery_mix",
        str,
        "normal",
        "Shares of the groups A to E: even 1:1:1:1:1, normal 1:2:4:2:1, or weights; jobs are drawn into them once.",
        "recovery",
        choices=RECOVERY_MIXES,
        form=MIX_FORM,
        form_doc="weights such as 1:2:4:2:1",
        inert=no_recovery,
    ),
    Parameter(
        "manual_delay_h",
        float,
        4.0,
        "Mean time until a user notices a failure and resubmits the job (option A, manual).",
        "recovery",
        minimum=0,
        maximum=1e6,
        unit="h",
        inert=_no_manual_delay,
    ),
    Parameter(
        "manual_delay_distribution",
        str,
        "exponential",
        "Distribution of that time.",
        "recovery",
        choices=REPAIRS,
        inert=_no_random_delay,
    ),
    Parameter(
        "manual_delay_sigma",
        float,
        1.0,
        "Standard deviation of the logarithm of a lognormal such time.",
        "recovery",
        minimum=0,
        maximum=5,
        inert=lambda config: _no_random_delay(config) or config["manual_delay_distribution"] != "lognormal",
    ),
    Parameter(
        "hold_nodes",
        bool,
        True,
        "Whether a job under option C keeps its healthy nodes idle until all of them are up.",
        "recovery",
        inert=lambda config: _nobody(config, "c"),
    ),
    Parameter(
        "credits",
        bool,
        False,
        "Whether users pay for recovery options; who cannot pay gets option A.",
        "recovery",
        inert=lambda config: no_recovery(config) or config["recovery"] == "manual",
    ),
    Parameter(
        "credit_prices",
        str,
        "1:2:3:4:5",
        "Prices alpha of a requested node-hour under the options A to E.",
        "recovery",
        choices={"1:2:3:4:5": "One credit more for every option."},
        form=PRICE_FORM,
        form_doc="five prices such as 1:2:3:4:5",
        inert=_unpaid,
    ),
    Parameter(
        "credit_beta",
        float,
        -1.0,
        "Credits granted for each requested node-hour with its submission; -1: the median price.",
        "recovery",
        minimum=-1,
        maximum=1e9,
        inert=_unpaid,
    ),
    Parameter(
        "gaming_frac",
        float,
        0.0,
        "Share of the users who always ask for option E, whatever the group of their job calls for.",
        "recovery",
        minimum=0,
        maximum=1,
        inert=_is_not("recovery", "mix"),
    ),
    # run control and metrics
    Parameter("slowdown_bound_s", float, 10.0, "Gamma of the bounded slowdown.", "metrics", minimum=1e-9, unit="s"),
    Parameter("max_restarts", int, 10_000, "Restarts of one job at which the run is truncated.", "run", minimum=0),
    Parameter(
        "horizon_s",
        float,
        math.inf,
        "Time since the first submission at which the run is truncated.",
        "run",
        minimum=0,
        unit="s",
    ),
    Parameter(
        "time_scheduling",
        bool,
        False,
        "Whether the time of scheduling is measured: mean_scheduling_s and max_scheduling_s.",
        "run",
    ),
)


def resolve(values: Config) -> dict[str, Any]:
    """Return the full configuration: checked values, and defaults for what is not named.

    Raises
    ------
    InputError
        One sentence for every unknown name and every invalid value, joined by newlines.
    """
    problems = _problems(values)
    if problems:
        raise InputError("\n".join(problems))
    return {name: p.check(values[name]) if name in values else p.default for name, p in PARAMETERS.items()}


def _problems(values: Config) -> Iterable[str]:
    problems = []
    for name, value in values.items():
        try:
            if name not in PARAMETERS:
                raise unknown_name("parameter", name, PARAMETERS)
            PARAMETERS[name].check(value)
        except InputError as error:
            problems.append(str(error))
    return problems


def canonical(values: Config) -> dict[str, Any]:
    """Return the canonical form: every parameter that does nothing in this configuration at its default.

    Configurations with equal canonical forms are the same run (MODEL, section 10). Neutralising one parameter can make
    another inert, so it is repeated until nothing changes.
    """
    config = resolve(values)
    while True:
        neutral = {name: p.default if p.inert(config) else config[name] for name, p in PARAMETERS.items()}
        if neutral == config:
            return config
        config = neutral
