"""The registry of policies: for every parameter that takes names, the names, each with one sentence.

The order of the names of a policy of the engine is its code (``state.py``). Validation, the command line and
``faultsweep list`` read this table and nothing else. A new policy is a line here, a code in ``state.py``, and a kernel.
"""

from __future__ import annotations

from collections.abc import Mapping

SCHEDULERS = {
    "fcfs": "First come, first served: nobody overtakes the head of the queue.",
    "backfill": "Weak (EASY) backfilling: a job may overtake if it does not delay the head of the queue.",
    "conservative": "Strong backfilling: a job may overtake if it delays no job ahead of it.",
    "migration": "FCFS, and running jobs move together on the torus when its free nodes are scattered.",
    "backfill+migration": "FCFS, then migration, then backfilling (B+M).",
}

ALIASES = {
    "scheduler": {
        "fifo": "fcfs",
        "easy": "backfill",
        "easy-backfill": "backfill",
        "easy-backfilling": "backfill",
        "conservative-backfill": "conservative",
        "conservative-backfilling": "conservative",
        "cbf": "conservative",
        "b+m": "backfill+migration",
    },
    "queue_order": {"spt": "sjf", "spf": "sjf", "lpt": "ljf", "lpf": "ljf"},
}
"""Parameter -> other names that the field has for policies; configurations and stores have the policy's own."""

EVENT_ORDERS = {
    "instant": "All events of an instant, then one scheduling pass.",
    "submits-first": "One pass after every event, submissions before completions (pyss).",
    "ends-first": "One pass after every event, completions before submissions.",
}

ESTIMATES = {
    "actual": "The run time itself.",
    "requested": "The time that the user asked for.",
    "f-model": "Uniform between the run time and f times it.",
}

RESAMPLES = {
    "none": "The log as it is, in every replicate.",
    "users": "Another realisation for each replicate: the log's users in other weeks, drawn and moved by whole weeks.",
}

SIZE_MAPS = {
    "exact": "Sizes as the log has them; one larger than the machine is an error.",
    "scale": "Sizes times nodes of the machine / nodes of the log, rounded up.",
    "clip": "Sizes larger than the machine become the machine.",
    "drop": "Jobs larger than the machine are left out, and counted.",
}

PLACEMENTS = {
    "mfp": "The box that leaves the largest maximal free partition (krevat2003, ch. 2).",
    "balancing": "Least loss of free partition plus predicted loss by failure (oliner2004, section 5).",
    "tie-breaking": "Of the boxes that leave most, one that is not predicted to fail (oliner2004, section 5).",
}

PARTITION_FAILURES = {
    "product": "1 - the product of the survival probabilities of its nodes.",
    "max": "The largest of the failure probabilities of its nodes.",
}

FINDERS = {
    "columns": "Ours: bit masks of columns, and a list of the maximal free boxes. The default, and the fastest.",
    "exhaustive": "Every shape at every base, node by node (krevat2003, ch. 3).",
    "pop": "Projection of partitions: tables of free runs, planes projected onto each other (krevat2003, ch. 3).",
    "divisor": "Shapes whose sides divide the size, runs of free cross sections (oliner2004, appendix).",
}

FAILURE_FITS = {
    "auto": "Exact for a trace of our own, scaled for any other log.",
    "exact": "The times of the log, from the first submission on.",
    "scale": "The log's span stretched or compressed to that of the jobs.",
    "repeat": "The log again and again until the jobs end.",
    "calendar": "A trace of our own whose times are those of the job log's clock.",
}

FAILURE_STARTS = {
    "stationary": "As if they had begun long before the run: its length / MTBF failures on average.",
    "new": "With the run: all nodes are new, and shapes below 1 have more failures at first.",
}

NODE_MAPS = {
    "auto": "Identity if the machines agree, else a permutation.",
    "identity": "A node of the log is the node of that number.",
    "rank": "The log's nodes, most failures first, laid over the machine's.",
    "permutation": "The same over the machine's nodes in random order.",
}

CHECKPOINTS = {
    "none": "Never.",
    "periodic": "After every interval of work (zhang2004, section V-B).",
    "young": "After Young's interval of work, from the mean time between failures (1974).",
    "daly": "After Daly's interval of work, from the mean time between failures (2006).",
    "risk": "After an interval of work, if the predicted loss exceeds the cost.",
    "exact": "Complete at the instant at which a node of the job fails (zhang2004, section V-B).",
    "bucket": "At the start of every bucket of time that will contain a failure (zhang2004, section V-B).",
}

BUCKET_JOBS = {
    "all": "All running jobs.",
    "long": "Jobs that have run for a while.",
    "biggest": "The jobs that hold most nodes.",
}

NODE_CHOICES = {
    "first-fit": "The free nodes of lowest index (the baseline of zhang2004).",
    "lff": "Least failure first: the free nodes that have failed least, with moves to safer ones (zhang2004, V-D).",
    "random": "Free nodes at random.",
    "round-robin": "The free nodes that follow the one taken last.",
}

REPAIRS = {
    "constant": "Every repair takes the mean.",
    "exponential": "Exponentially distributed.",
    "lognormal": "Lognormally distributed.",
}

CLUSTER_SCHEDULERS = {
    "fcfs": SCHEDULERS["fcfs"],
    "backfill": SCHEDULERS["backfill"],
    "first-fit": "Every job that has a place starts, in the order of the queue (clusters).",
}

META_SCHEDULERS = {
    "local": "A job runs in the cluster that it was submitted to.",
    "migration-only": "A job runs whole in any cluster (the baseline of akshitha2011).",
    "naive": "A job may run over several clusters, whatever their trunks carry.",
    "bandwidth-aware": "A job may run over several clusters if what it and the others state fits the trunks.",
}

QUEUES = {
    "local": "The queue discipline orders each cluster's queue for itself.",
    "global": "The queue discipline orders all waiting jobs as one queue.",
}

PARTITIONINGS = {
    "largest-first": "The cluster with most free nodes gives all of them, then the next (akshitha2011).",
    "minimum-cut": "The nodes of each cluster are chosen so that the trunks together carry least.",
}

SPLITS = {
    "random": "Clusters are drawn, in proportion to their nodes.",
    "round-robin": "Clusters take jobs in turn.",
    "user": "Each user has a cluster.",
    "overlay": "Consecutive parts of the log, one for each cluster, are laid over each other.",
}

BANDWIDTHS = {
    "constant": "Every job needs the mean.",
    "uniform": "Uniform around the mean.",
    "exponential": "Exponentially distributed.",
}

ERROR_DIRECTIONS = {
    "both": "Below or above the true bandwidth.",
    "under": "Below the true bandwidth.",
    "over": "Above the true bandwidth.",
}

AGENTS = {
    "none": "Nothing relieves a saturated trunk.",
    "ctmr": "Jobs that understated their bandwidth are checkpointed and migrated, if that pays (akshitha2011, II.E).",
    "naive": "The largest job on a saturated trunk is checkpointed and migrated, always (akshitha2011, II.D).",
}

TRUNK_OUTAGES = {
    "kill": "Jobs that need the trunk are killed.",
    "stall": "Jobs that need the trunk wait for its repair.",
}
QUEUE_ORDERS = {
    "fcfs": "By arrival.",
    "wfp": "By the utility (wait / estimate)^3 x nodes, anew at every pass, as Cobalt's WFP (tang2010).",
    "sjf": "Shortest estimate first.",
    "ljf": "Longest estimate first.",
    "saf": "Smallest area, estimate x nodes, first.",
    "random": "In an order that is drawn once.",
    "f1": "By log10(estimate) x nodes + 870 log10(submission), lowest first (Carastan-Santos 2017).",
    "f2": "By sqrt(estimate) x nodes + 25,600 log10(submission), lowest first (Carastan-Santos 2017).",
    "f3": "By estimate x nodes + 6,860,000 log10(submission), lowest first (Carastan-Santos 2017).",
    "f4": "By estimate x sqrt(nodes) + 530,000 log10(submission), lowest first (Carastan-Santos 2017).",
}

OPTIONS = {
    "A": "Notify only: the user resubmits the job by hand, after a delay.",
    "B": "Resubmit to the rear of the queue.",
    "C": "Restart on the original nodes once they are repaired.",
    "D": "Insert in the middle of the queue.",
    "E": "Resubmit to the head of the queue.",
}

RECOVERIES = {
    "arrival": "Back to the place in the queue that the arrival gives it.",
    "manual": "Resubmission by hand, as under option A (MR of tang2010).",
    "mix": "Each job the option that its group A to E calls for (tang2010, slide 8).",
    **{f"all-{letter.lower()}": f"All jobs: {text[0].lower()}{text[1:]}" for letter, text in OPTIONS.items()},
}

RECOVERY_MIXES = {"normal": "Shares 1:2:4:2:1 of the options A to E.", "even": "Shares 1:1:1:1:1."}


def code_of(policies: Mapping[str, str], name: str) -> int:
    """Return the code of a policy: its place in its registry."""
    return list(policies).index(name)
