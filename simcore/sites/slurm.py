"""A site from what SLURM prints and from slurm.conf."""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime
from itertools import count
from typing import Any, Literal

import numpy as np
from faultsweep.simcore.sites.facts import Facts, Keys, known
from faultsweep.simcore.sites.hosts import hosts_text
from faultsweep.simcore.sites.site import (
    Account,
    Backfill,
    Licence,
    NodeClass,
    Partition,
    Priority,
    Qos,
    Reservation,
    Site,
    made,
)
from faultsweep.simcore.workloads.accounting.units import Zone, clock, expand_hosts, memory_mb, stamp

from faultsweep.errors import InputError

_UNLIMITED = frozenset(("UNLIMITED", "INFINITE", "infinite", "unlimited"))
# Field, seconds (or jobs) of a unit, the values that SLURM takes, and its default, which it uses where it takes none.
_BACKFILL = {
    "bf_interval": ("interval_s", 1, range(1, 10_801), "30"),
    "bf_window": ("window_s", 60, range(1, 43_201), "1440"),
    "bf_resolution": ("resolution_s", 1, range(1, 3_601), "60"),
    "bf_max_job_test": ("max_job_test", 1, range(1, 1_000_001), "500"),
    "bf_max_job_user": ("max_job_user", 1, range(1_000_000_000), "0"),
    "default_queue_depth": ("default_queue_depth", 1, range(1_000_000_000), "100"),
    "sched_interval": ("full_interval_s", 1, range(1_000_000_000), "60"),
}
# A time between passes of -1: SLURM makes no such passes.
_NO_PASSES = frozenset(("bf_interval=-1", "sched_interval=-1"))
_PREEMPT: dict[str, Literal["", "qos", "partition"]] = {
    "preempt/qos": "qos",
    "preempt/partition_prio": "partition",
}
_HARMLESS = frozenset(("max_script_size", "batch_sched_delay", "sched_min_interval", "max_rpc_cnt", "bf_continue"))
_TRES = {"cpu": "tres_cpu", "gres/gpu": "tres_gpu", "mem": "tres_mem", "node": "tres_node"}
_WEIGHTS = ("Age", "Assoc", "Fairshare", "JobSize", "Partition", "QOS")
# Limits of a QOS, a partition or an association that a site file has no place for.
_QOS_LIMITS = (
    *("GrpTRESMins", "GrpTRESRunMins", "GrpWall", "MaxTRES", "MaxTRESPerNode", "MaxTRESMins"),
    *("MinTRES", "Flags", "UsageThres", "PreemptExemptTime"),
)
_PARTITION_LIMITS = (
    *("AllowGroups", "AllowAccounts", "DenyAccounts", "AllowQos", "DenyQos", "MaxCPUsPerNode", "OverTimeLimit"),
    *("AllocNodes", "MaxMemPerCPU", "MaxMemPerNode", "LLN", "ReqResv", "RootOnly"),
)
# As sacctmgr list assoc names them, and as sacctmgr dump does.
_ACCOUNT_LIMITS = (
    *(("GrpWall",), ("GrpTRESMins",), ("GrpTRESRunMins",), ("Partition",), ("QOS",)),
    *(("MaxTRES", "MaxTRESPerJob"), ("MaxTRESPerNode",), ("MaxTRESMins", "MaxTRESMinsPerJob")),
    ("MaxWall", "MaxWallDurationPerJob"),
)
# Flags of a reservation that change when it is, what it has, or who runs in it.
_CHANGING = frozenset(
    (
        *("DAILY", "WEEKLY", "WEEKDAY", "WEEKEND", "HOURLY", "TIME_FLOAT", "FLEX", "ANY_NODES"),
        *("MAGNETIC", "REPLACE", "PURGE_COMP"),
    )
)
_SETTINGS = {
    "TopologyPlugin": ("topology/none", "topology/default", "topology/flat"),
    "BurstBufferType": (),
    "JobSubmitPlugins": (),
    "PriorityFlags": (),
    "PriorityUsageResetPeriod": ("NONE",),
    "FederationParameters": (),
    "EnforcePartLimits": ("NO",),
    "PowerSaveProgram": (),
    "SuspendProgram": (),
}


def build(facts: Facts, timezone: str = "UTC") -> Site:
    """Return the site, with what it cannot hold in ``not_represented``."""
    missing: list[str] = []
    classes, of_host = _node_classes(facts, missing)
    kinds = {of_class.threads for of_class in classes}
    threads = kinds.pop() if len(kinds) == 1 else 0
    return made(
        Site,
        "the files",
        name=known(facts.config, "ClusterName") or "site",
        scheduler="slurm",
        nodes=classes,
        partitions=[_partition(keys, of_host, classes, missing) for keys in facts.partitions],
        qos=_known_preempts([_qos(keys, threads, missing) for keys in facts.qos], missing),
        accounts=_accounts(facts, threads, missing),
        reservations=_reservations(facts, Zone(timezone), of_host, classes, missing),
        licences=_licences(facts),
        priority=_priority(facts, missing),
        backfill=_backfill(facts, missing),
        preempt_by=_PREEMPT.get(known(facts.config, "PreemptType"), ""),
        preempt_mode="" if known(facts.config, "PreemptMode") == "OFF" else known(facts.config, "PreemptMode"),
        preempt_exempt_s=max(0.0, _seconds(facts.config, "PreemptExemptTime") or 0.0),
        preempt_wait_s=_preempt_wait(facts),
        not_represented=[*missing, *_settings(facts)],
    )


def _whole(keys: Keys, *names: str) -> int | None:
    """Return a whole number, None for no limit or none given."""
    text = known(keys, *names)
    if not text or text in _UNLIMITED:
        return None
    found = re.match(r"-?\d{1,15}", text)
    if not found:
        raise InputError(f"{names[0]} is {text[:40]!r}, not a whole number")
    return int(found[0])


def _most(keys: Keys, *names: str) -> int | None:
    """Return a limit; None for none, which SLURM also writes as -1."""
    most = _whole(keys, *names)
    return None if most is None or most < 0 else most


def _seconds(keys: Keys, *names: str, per: int = 1) -> float | None:
    """Return a duration of SLURM, None for none: a number is in units of ``per`` seconds, and may be followed by sec or
    min."""
    text = known(keys, *names)
    if not text or text in _UNLIMITED or text == "NONE":
        return None
    number = re.fullmatch(r"(\d{1,9})(?:\s*(sec|min|usec)\w*)?", text)
    if number:
        return int(number[1]) * {"sec": 1.0, "min": 60.0, "usec": 1e-6}.get(number[2], float(per))
    minutes = re.fullmatch(r"(\d{1,9}):(\d\d)", text)  # minutes and seconds
    try:
        return int(minutes[1]) * 60.0 + int(minutes[2]) if minutes else clock(text)
    except ValueError:
        valid = "minutes, or days-hours:minutes:seconds"
        raise InputError(f"{names[0]} is {text[:40]!r}, not a duration (valid: {valid})") from None


def _hosts(key: str, text: str) -> list[str]:
    try:
        return expand_hosts(text)
    except ValueError as error:
        raise InputError(f"{key}={text[:60]}: not a list of hosts, such as n[1-3,7] ({error})") from None


def _node_classes(facts: Facts, missing: list[str]) -> tuple[list[NodeClass], dict[str, str]]:
    """Return the classes of nodes, and the class of each host."""
    kinds: dict[tuple[Any, ...], list[str]] = {}
    for keys in facts.nodes:
        hosts = _hosts("NodeName", known(keys, "NodeName"))
        if not hosts:
            continue
        kinds.setdefault(_kind(keys, hosts[0], missing), []).extend(hosts)
        state = known(keys, "State").split("+")
        if {"DOWN", "DRAIN", "FAIL", "DOWN*"} & set(state):
            missing.append(f"node {known(keys, 'NodeName')}: is {'+'.join(state)} now; the site has it as working")
    if not kinds:
        raise InputError("the files name no node (valid: scontrol show node -o, or slurm.conf)")
    classes: list[NodeClass] = []
    of_host: dict[str, str] = {}
    taken: Counter[str] = Counter()
    for (cores, threads, gpus, gpu_type, memory, features, weight), hosts in kinds.items():
        stem = re.match(r"[A-Za-z_-]*", hosts[0])
        name = (stem[0] if stem else "").rstrip("-_") or "node"
        taken[name] += 1
        name += f"-{taken[name]}" if taken[name] > 1 else ""
        of_host |= dict.fromkeys(hosts, name)
        given = {"threads": threads, "gpus": gpus, "gpu_type": gpu_type, "memory_mb": memory, "weight": weight}
        listed = hosts_text(hosts)
        classes.append(
            made(
                NodeClass,
                f"nodes {listed}",
                name=name,
                count=len(hosts),
                hosts=listed,
                cores=cores,
                features=list(features),
                **given,
            )
        )
    return classes, of_host


def _kind(keys: Keys, host: str, missing: list[str]) -> tuple[Any, ...]:
    """Return what makes nodes alike: cores, threads, GPUs, memory, features and weight."""
    threads = _whole(keys, "ThreadsPerCore") or 1
    sockets, per_socket = _whole(keys, "Sockets") or 1, _whole(keys, "CoresPerSocket") or 1
    cpus = _whole(keys, "CPUTot", "CPUs", "Procs") or sockets * per_socket * threads
    gpus, gpu_type = 0, ""
    for item in known(keys, "Gres").split(","):
        name, *rest = re.sub(r"\(.*?\)", "", item).split(":")
        if name == "gpu":
            gpus += int(rest[-1]) if rest and rest[-1].isdigit() else 1
            gpu_type = rest[0] if len(rest) > 1 else gpu_type
        elif name:
            missing.append(f"node {host}: generic resource {item}")
    memory = known(keys, "RealMemory")
    features = known(keys, "AvailableFeatures", "Features", "Feature")
    return (
        max(1, cpus // threads),
        threads,
        gpus,
        gpu_type,
        int(memory_mb(memory)[0]) if re.fullmatch(r"[0-9]{1,12}", memory) else 0,
        tuple(sorted(name for name in features.split(",") if name)),
        _whole(keys, "Weight") or 1,
    )


def _partition(keys: Keys, of_host: dict[str, str], classes: list[NodeClass], missing: list[str]) -> Partition:
    name, listed = known(keys, "PartitionName"), known(keys, "Nodes")
    if listed == "ALL":
        nodes = {of_class.name: of_class.count for of_class in classes}
    else:
        hosts = _hosts(f"PartitionName={name} Nodes", listed) if listed else []
        unknown = [host for host in hosts if host not in of_host]
        if unknown:
            missing.append(f"partition {name}: {len(unknown)} nodes that no file describes, such as {unknown[0]}")
        nodes = dict(Counter(of_host[host] for host in hosts if host in of_host))
    share = known(keys, "OverSubscribe", "Shared")
    if share.startswith(("FORCE", "YES")):
        missing.append(f"partition {name}: OverSubscribe={share} (cores that several jobs share)")
    for limit in _PARTITION_LIMITS:
        value = known(keys, limit)
        if value and value not in _UNLIMITED and value not in ("ALL", "NO", "0"):
            missing.append(f"partition {name}: {limit}={value}")
    if known(keys, "State") == "DRAIN":
        missing.append(f"partition {name}: State=DRAIN (its waiting jobs may still start; the site has it as down)")
    return made(
        Partition,
        f"partition {name}",
        name=name,
        nodes=nodes,
        default=known(keys, "Default") == "YES",
        up=known(keys, "State") in ("", "UP"),
        exclusive=share == "EXCLUSIVE" or known(keys, "ExclusiveUser") == "YES",
        default_time_s=_seconds(keys, "DefaultTime", per=60),
        max_time_s=_seconds(keys, "MaxTime", per=60),
        min_nodes=_whole(keys, "MinNodes") or 0,
        max_nodes=_most(keys, "MaxNodes"),
        priority_tier=_whole(keys, "PriorityTier", "Priority") or 1,
        priority_factor=_whole(keys, "PriorityJobFactor", "Priority") or 1,
        qos=known(keys, "QoS"),
        preempt_mode=known(keys, "PreemptMode"),
        grace_s=_seconds(keys, "GraceTime") or 0.0,
    )


def _cores(text: str, threads: int) -> tuple[int | None, str]:
    """Return the cores of a limit such as cpu=64,node=2, None without any, and the rest of the limit.

    threads : of a core, on all nodes; 0 if they differ, so that CPUs are not cores.
    """
    if re.fullmatch(r"[0:.]*", text):
        return None, ""
    parts = text.split(",")
    cpus = [found for found in (re.fullmatch(r"cpu=(\d{1,12})", part) for part in parts) if found and threads]
    rest = ",".join(part for part in parts if part not in {found[0] for found in cpus})
    return (int(cpus[-1][1]) // threads if cpus else None), rest


def _qos(keys: Keys, threads: int, missing: list[str]) -> Qos:
    name = known(keys, "Name")
    cores = {}
    for field, *names in (
        ("max_cores", "GrpTRES"),
        ("max_cores_user", "MaxTRESPU", "MaxTRESPerUser"),
        ("max_cores_account", "MaxTRESPA", "MaxTRESPerAccount"),
    ):
        cores[field], rest = _cores(known(keys, *names), threads)
        if rest:
            missing.append(f"QOS {name}: {names[0]}={rest}")
    for limit in _QOS_LIMITS:
        value = known(keys, limit)
        if value and not re.fullmatch(r"[0:.]*", value):
            missing.append(f"QOS {name}: {limit}={value}")
    factor = known(keys, "UsageFactor")
    return made(
        Qos,
        f"QOS {name}",
        name=name,
        priority=_whole(keys, "Priority") or 0,
        preempts=[other for other in known(keys, "Preempt").split(",") if other],
        preempt_mode=known(keys, "PreemptMode").replace("cluster", ""),
        grace_s=_seconds(keys, "GraceTime") or 0.0,
        max_wall_s=_seconds(keys, "MaxWall", "MaxWallDurationPerJob", per=60),
        max_jobs=_most(keys, "GrpJobs"),
        max_jobs_user=_most(keys, "MaxJobsPU", "MaxJobsPerUser"),
        max_submit=_most(keys, "GrpSubmit", "GrpSubmitJobs"),
        max_submit_user=_most(keys, "MaxSubmitPU", "MaxSubmitJobsPerUser"),
        max_jobs_account=_most(keys, "MaxJobsPA", "MaxJobsPerAccount"),
        max_submit_account=_most(keys, "MaxSubmitPA", "MaxSubmitJobsPerAccount"),
        **cores,
        usage_factor=float(factor) if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", factor) else 1.0,
    )


def _known_preempts(qos: list[Qos], missing: list[str]) -> list[Qos]:
    """Return QOS that preempt no others than those of the files."""
    names = {one.name for one in qos}
    for one in qos:
        missing += [
            f"QOS {one.name}: Preempt={other}, which no file describes" for other in one.preempts if other not in names
        ]
    return [one.model_copy(update={"preempts": [other for other in one.preempts if other in names]}) for one in qos]


def _accounts(facts: Facts, threads: int, missing: list[str]) -> list[Account]:
    accounts = []
    limited: Counter[str] = Counter()
    for keys in facts.accounts:
        limited.update(names[0] for names in _ACCOUNT_LIMITS if known(keys, *names))
        cores, rest = _cores(known(keys, "GrpTRES"), threads)
        limited.update(("GrpTRES",) if rest else ())
        shares = known(keys, "Fairshare", "Share")
        accounts.append(
            Account(
                account=known(keys, "Account") or "root",
                user=known(keys, "User"),
                parent=known(keys, "ParentName", "Par Name", "Parent"),
                shares=int(shares) if re.fullmatch(r"\d{1,12}", shares) else None,
                priority=_most(keys, "Priority"),
                max_jobs=_most(keys, "MaxJobs"),
                group_jobs=_most(keys, "GrpJobs"),
                group_cores=cores,
                max_submit=_most(keys, "MaxSubmit", "MaxSubmitJobs"),
                group_submit=_most(keys, "GrpSubmit", "GrpSubmitJobs"),
            )
        )
    missing += [f"accounts: {limit} of {count} accounts and users" for limit, count in limited.items()]
    return accounts


def _reservations(
    facts: Facts, zone: Zone, of_host: dict[str, str], classes: list[NodeClass], missing: list[str]
) -> list[Reservation]:
    """Return the reservations of nodes, each with a name of its own."""
    found: list[Reservation] = []
    different = [keys for place, keys in enumerate(facts.reservations) if keys not in facts.reservations[:place]]
    taken = {known(keys, "ReservationName") for keys in different}
    for keys in different:
        window = _reservation(keys, zone, of_host, classes, missing)
        if window is None or window in found:
            continue
        if window.name in {each.name for each in found}:
            other = next(name for k in count(2) if (name := f"{window.name}-{k}") not in taken)
            taken.add(other)
            missing.append(
                f"reservation {window.name}: there more than once; another one is {other}, which no job asks for"
            )
            window = window.model_copy(update={"name": other})
        found.append(window)
    return found


def _reservation(
    keys: Keys, zone: Zone, of_host: dict[str, str], classes: list[NodeClass], missing: list[str]
) -> Reservation | None:
    """Return a reservation; None of one that has no nodes, such as one of licences."""
    name, flags = known(keys, "ReservationName"), known(keys, "Flags")
    if not {"nodes", "nodecnt"} & keys.keys():
        raise InputError(f"reservation {name}: it has neither Nodes nor NodeCnt (valid: scontrol show reservation -o)")
    hosts, size = _described(keys, of_host, missing), _whole(keys, "NodeCnt") or 0
    if known(keys, "Nodes") and not hosts:
        return None
    if not hosts and size <= 0:
        licences = known(keys, "Licenses")
        missing.append(f"reservation {name}: it has no nodes{f', only Licenses={licences}' if licences else ''}")
        return None
    most = sum(of_class.count for of_class in classes)
    if not hosts and size > most:
        missing.append(f"reservation {name}: NodeCnt={size}, of the {most} nodes that the files describe")
        return None
    times = [_reserved_time(keys, key, zone) for key in ("StartTime", "EndTime")]
    if times[1] <= times[0]:
        missing.append(f"reservation {name}: its EndTime is not after its StartTime")
        return None
    changing = _CHANGING & {flag.partition("=")[0] for flag in flags.split(",")}
    missing += [f"reservation {name}: {flag}" for flag in sorted(changing)]
    for key in ("Groups", "Licenses"):
        if known(keys, key):
            missing.append(f"reservation {name}: {key}={known(keys, key)}")
    reserved = _whole(keys, "CoreCnt") or 0
    if 0 < reserved < _cores_of(hosts, size, of_host, classes):
        missing.append(f"reservation {name}: CoreCnt={reserved}, single cores; here its nodes are reserved as a whole")
    return Reservation(
        name=name,
        start_s=times[0],
        end_s=times[1],
        nodes=None if hosts else size,
        hosts="" if hosts == "ALL" else hosts,
        maintenance="MAINT" in flags,
        users=[each for each in known(keys, "Users").split(",") if each],
        accounts=[each for each in known(keys, "Accounts").split(",") if each],
    )


def _described(keys: Keys, of_host: dict[str, str], missing: list[str]) -> str:
    """Return the list of the hosts of a reservation that the files describe, ALL for all."""
    name, text = known(keys, "ReservationName"), known(keys, "Nodes")
    if text == "ALL":
        return text
    listed = _hosts(f"ReservationName={name} Nodes", text)
    unknown = [host for host in listed if host not in of_host]
    if not unknown:
        return text
    missing.append(
        f"reservation {name}: no file describes {len(unknown)} of its {len(listed)} nodes, such as {unknown[0]}"
    )
    return hosts_text([host for host in listed if host in of_host])


def _reserved_time(keys: Keys, key: str, zone: Zone) -> float:
    """Return the start or the end of a reservation, s since 1970 UTC."""
    try:
        when, own_zone = stamp(known(keys, key))
    except ValueError as error:
        name = known(keys, "ReservationName")
        raise InputError(f"reservation {name}: {key} is {known(keys, key)[:40]!r}, {error}") from None
    local = np.array([(when - datetime(1970, 1, 1)).total_seconds()])
    return float(local[0] if own_zone else zone.early(local)[0])


def _cores_of(hosts: str, size: int, of_host: dict[str, str], classes: list[NodeClass]) -> int:
    """Return the cores that the nodes of a reservation have, at least those of as many of the smallest nodes."""
    cores = {of_class.name: of_class.cores for of_class in classes}
    if not hosts:
        return size * min(cores.values())
    listed = list(of_host) if hosts == "ALL" else _hosts("Nodes", hosts)
    return sum(cores[of_host[host]] for host in listed if host in of_host)


def _licences(facts: Facts) -> list[Licence]:
    found = {known(keys, "LicenseName"): _whole(keys, "Total") or 0 for keys in facts.licences}
    for item in known(facts.config, "Licenses").split(","):
        name, _, total = item.partition(":")
        if name:
            found.setdefault(name, int(total) if total.isdigit() else 1)
    return [made(Licence, f"licence {name}", name=name, total=total) for name, total in found.items()]


def _priority(facts: Facts, missing: list[str]) -> Priority:
    config = facts.config
    if known(config, "PriorityType") != "priority/multifactor":
        return Priority()
    weights = {name.lower(): float(_whole(config, f"PriorityWeight{name}") or 0) for name in _WEIGHTS}
    for item in known(config, "PriorityWeightTRES").lower().split(","):
        name, _, weight = item.partition("=")
        if name in _TRES and weight.isdigit():
            weights[_TRES[name]] = float(weight)
        elif name:
            missing.append(f"PriorityWeightTRES of {name}")
    flags = known(config, "PriorityFlags")
    return Priority(
        kind="multifactor",
        weights={name: weight for name, weight in weights.items() if weight},
        max_age_s=_seconds(config, "PriorityMaxAge", per=60) or 7 * 86_400.0,
        half_life_s=_seconds(config, "PriorityDecayHalfLife", per=60),
        calc_period_s=_seconds(config, "PriorityCalcPeriod", per=60) or 300.0,
        favour_small=known(config, "PriorityFavorSmall") in ("YES", "Yes"),
        fair_tree="NO_FAIR_TREE" not in flags,
    )


def _backfill(facts: Facts, missing: list[str]) -> Backfill:
    chosen: dict[str, Any] = {}
    for item in known(facts.config, "SchedulerParameters").split(","):
        name, _, value = item.strip().partition("=")
        if name in _BACKFILL and re.fullmatch(r"-?\d{1,9}", value) and item.strip() not in _NO_PASSES:
            key, scale, valid, default = _BACKFILL[name]
            if int(value) in valid:
                chosen[key] = int(value) * scale
            else:
                told = f"SLURM takes {valid[0]} or more" + (f", up to {valid[-1]}" if valid[-1] < 999_999_999 else "")
                missing.append(f"SchedulerParameters: {item.strip()} ({told}, and so uses its default, {default})")
        elif name and name not in _HARMLESS:
            missing.append(f"SchedulerParameters: {item.strip()}")
    kind = known(facts.config, "SchedulerType").removeprefix("sched/") or "backfill"
    return Backfill(kind=kind, **chosen)


def _preempt_wait(facts: Facts) -> float | None:
    """Return for how long a job that has had others leave has no more leave, s; None if that is not said."""
    kill, message = (_seconds(facts.config, name) for name in ("KillWait", "MessageTimeout"))
    return None if kill is None or message is None else kill + message


def _settings(facts: Facts) -> list[str]:
    found = []
    for key, usual in _SETTINGS.items():
        value = known(facts.config, key)
        if value and value not in usual:
            found.append(f"{key}={value}")
    preempt = known(facts.config, "PreemptType")
    if preempt and preempt != "preempt/none" and preempt not in _PREEMPT:
        found.append(f"PreemptType={preempt}")
    return found
