"""What files from a scheduler say, before it becomes a site: tables of keys and values."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from faultsweep.compression import read_content
from faultsweep.errors import InputError

Keys = dict[str, str]

_PAIR = re.compile(r"([A-Za-z][\w/.:-]*)=")
_NOTHING = frozenset(("", "(null)", "N/A", "None", "NONE", "none", "n/a", "Unknown"))
_KINDS = {
    "NodeName": "nodes",
    "PartitionName": "partitions",
    "ReservationName": "reservations",
    "LicenseName": "licences",
}
# A reservation as scontrol prints it without -o: more of it stands in the indented lines that follow.
_RESERVATION = re.compile(r"^ReservationName=.*(?:\n[ \t]+\S.*)+", re.MULTILINE)
_DUMP = re.compile(r"(Cluster|Parent|Account|User) - '?([^':]+)'?(?::(.*))?")
_SCRIPT = re.compile(r"(?:add|create|modify)\s+(qos|account|user)\s+(.*)", re.IGNORECASE)
_QMGR = re.compile(r"(create|set) (queue|server|node|sched)\s*(.*)")
_SCHED_CONFIG = re.compile(
    r"(strict_ordering|by_queue|round_robin|fair_share|help_starving_jobs)\s*:\s*(true|false)\b.*", re.IGNORECASE
)


@dataclass
class Facts:
    """Tables by kind; ``config`` are the settings of the scheduler, with keys in small letters."""

    config: Keys = field(default_factory=dict)
    nodes: list[Keys] = field(default_factory=list)
    partitions: list[Keys] = field(default_factory=list)
    reservations: list[Keys] = field(default_factory=list)
    licences: list[Keys] = field(default_factory=list)
    qos: list[Keys] = field(default_factory=list)
    accounts: list[Keys] = field(default_factory=list)
    queues: dict[str, Keys] = field(default_factory=dict)
    pbs_nodes: dict[str, Keys] = field(default_factory=dict)


def read_facts(paths: list[Path]) -> Facts:
    """Read what ``scontrol show``, ``sacctmgr`` and ``qmgr`` print, and slurm.conf; each line tells what it is.

    Raises
    ------
    InputError
        If a file cannot be read or contains no facts about a site.
    """
    facts = Facts()
    for path in paths:
        text = read_content(path).decode("utf-8", "replace").replace("\r\n", "\n").replace("\\\n", " ")
        if not _Reader(facts, path).read(text):
            raise InputError(
                f"{path}: contains no facts about a site (valid: what scontrol show config, show partition -o, "
                "show node -o, show reservation -o, sacctmgr -P list qos, -P list assoc, sacctmgr dump and "
                "qmgr -c 'print server' print, slurm.conf, and sched_config of PBS)"
            )
    return facts


def known(keys: Keys, *names: str) -> str:
    """Return the first value that is there and says something, or ""."""
    for name in names:
        value = keys.get(name.lower(), "")
        if value not in _NOTHING:
            return value
    return ""


class _Reader:
    def __init__(self, facts: Facts, path: Path) -> None:
        self.facts, self.path = facts, path
        self.header: list[str] = []
        self.parent = ""
        self.defaults: dict[str, Keys] = {}

    def read(self, text: str) -> int:
        """Read a file and return how many lines said something."""
        return sum(self._line(line.strip()) for line in _RESERVATION.sub(_one_line, text).split("\n"))

    def _line(self, line: str) -> bool:
        if not line or line.startswith("#"):
            return False
        if "|" in line and self._table(line):
            return True
        found = _DUMP.fullmatch(line)
        if found:
            return self._dump(found[1], found[2], found[3] or "")
        found = _QMGR.fullmatch(line)
        if found:
            return self._qmgr(found[1], found[2], found[3])
        found = _SCHED_CONFIG.fullmatch(line)
        if found:  # in prime time or out of it: one line that turns it on is enough
            key = f"sched_config.{found[1].lower()}"
            self.facts.config[key] = "true" if self.facts.config.get(key) == "true" else found[2].lower()
            return True
        found = _SCRIPT.fullmatch(line)
        if found:
            return self._script(found[1].lower(), found[2])
        return self._pairs(line)

    def _pairs(self, line: str) -> bool:
        """Take NodeName=... and its like, or one setting."""
        first = line.split("=", 1)[0].strip()
        kind = next((kind for name, kind in _KINDS.items() if name.lower() == first.lower()), "")
        if kind and "=" in line:
            keys = pairs(line)
            name = keys.get(first.lower(), "")
            if name == "DEFAULT":
                self.defaults[kind] = self.defaults.get(kind, {}) | keys
                return True
            getattr(self.facts, kind).append(self.defaults.get(kind, {}) | keys)
            return True
        if "=" not in line or not re.fullmatch(r"[A-Za-z][\w.]*(\[\d+\])?", first):
            return False
        self.facts.config[first.lower()] = line.split("=", 1)[1].strip()
        return True

    def _table(self, line: str) -> bool:
        """Take a line of sacctmgr --parsable2, or the header of one."""
        fields = line.split("|")
        lowered = [name.lower() for name in fields]
        if ("name" in lowered and "priority" in lowered) or {"account", "user"} <= set(lowered):
            self.header = lowered
            return True
        if len(fields) != len(self.header):
            return False
        keys = dict(zip(self.header, fields, strict=True))
        (self.facts.qos if "name" in self.header else self.facts.accounts).append(keys)
        return True

    def _dump(self, kind: str, name: str, rest: str) -> bool:
        """Take a line of sacctmgr dump."""
        keys = {key.lower(): value.strip("'") for key, value in re.findall(r"(\w+)=('[^']*'|[^:]*)", rest)}
        if kind == "Parent":
            self.parent = name
        elif kind == "Cluster":
            self.facts.config.setdefault("clustername", name)
            self.facts.accounts.append({"account": "root", **keys})
        elif kind == "Account":
            self.facts.accounts.append({"account": name, "parentname": self.parent, **keys})
        else:
            self.facts.accounts.append({"account": self.parent, "user": name, **keys})
        return True

    def _script(self, kind: str, rest: str) -> bool:
        """Take a command such as add QOS Name=debug Priority=0."""
        keys = {key.lower(): value for key, value in re.findall(r"(\w+)=(\S+)", rest)}
        name = keys.get("name", "")
        if not name:
            return False
        table = self.facts.qos if kind == "qos" else self.facts.accounts
        place = "name" if kind == "qos" else "account" if kind == "account" else "user"
        found = next((row for row in table if row.get(place) == name), None)
        if found is None:
            extra = {"account": keys.get("account") or keys.get("defaultaccount", "")} if kind == "user" else {}
            table.append({**keys, **extra, place: name})
        else:
            found.update(keys)
        return True

    def _qmgr(self, verb: str, kind: str, rest: str) -> bool:
        """Take a line such as set queue workq resources_max.walltime = 24:00:00."""
        found = re.fullmatch(r"(\S+)?\s*(?:([\w.]+)\s*(\+?)=\s*(.*))?", rest)
        if kind in ("server", "sched"):
            found = re.fullmatch(r"()(?:([\w.]+)\s*(\+?)=\s*(.*))", rest)
        if not found:
            return False
        name, key, adds, value = found[1] or "", found[2], found[3], found[4]
        if kind in ("server", "sched"):
            self.facts.config[f"pbs.{key.lower()}"] = value
            return True
        table = self.facts.queues if kind == "queue" else self.facts.pbs_nodes
        keys = table.setdefault(name, {})
        if verb == "set" and key:
            before = keys.get(key.lower(), "") if adds else ""
            keys[key.lower()] = f"{before},{value}" if before else value
        return True


def _one_line(found: re.Match[str]) -> str:
    return " ".join(line.strip() for line in found[0].split("\n"))


def pairs(line: str) -> Keys:
    """Return the pairs of a line such as NodeName=n1 CPUTot=4 OS=Linux 6.1, whose values may have blanks."""
    places = list(_PAIR.finditer(line))
    starts = [found for found in places if found.start() == 0 or line[found.start() - 1].isspace()]
    ends = [*(found.start() for found in starts[1:]), len(line)][: len(starts)]
    return {found[1].lower(): line[found.end() : end].strip() for found, end in zip(starts, ends, strict=True)}
