"""Fair share in a tree of accounts, walked sibling by sibling."""

from __future__ import annotations

from math import inf, log2

Leaf = tuple[str, str]


def of_largest(name: str, factors, otherwise: float) -> float:
    """The number of a name as a part of the largest; without any numbers that of all others."""
    numbers = dict(factors)
    if max(numbers.values(), default=0) == 0:
        return 0.0 if numbers else otherwise
    return numbers.get(name, 0) / max(numbers.values())


class Node:
    """A user of an account, an account, or the root."""

    def __init__(self, shares: float, is_user: bool = False):
        self.shares, self.is_user, self.usage = shares, is_user, 0.0
        self.parent: Node | None = None
        self.children: list[Node] = []

    def adopt(self, child: Node) -> None:
        child.parent = self
        self.children.append(child)

    @property
    def due(self) -> float:
        total = sum(child.shares for child in self.parent.children)
        return self.shares / total if total else 0.0

    @property
    def level(self) -> float:
        """The shares here by the usage here; equal ones must come out equal, so not to the last bit."""
        if self.due == 0:
            return 0.0
        return 2.0 ** round(log2(self.due * self.parent.usage / self.usage), 9) if self.usage > 0 else inf


class Tree:
    """The tree of the users that have jobs, and of all that rows (account, user or "", parent, shares) name."""

    def __init__(self, used: dict[Leaf, float], rows):
        shares = {(account, user): number for account, user, _, number in rows}
        within = {account: parent or "root" for account, user, parent, _ in rows if not user}
        keys = sorted({*shares, *used} - {("root", "")})
        while lacking := {(name, "") for name in [*within.values(), *(key[0] for key in keys)]} - {*keys, ("root", "")}:
            keys += sorted(lacking)
        self.root = Node(1)
        self.nodes = {key: Node(shares.get(key, 1), is_user=bool(key[1])) for key in keys}
        for (account, user), node in self.nodes.items():
            above = account if user else within.get(account, "root")
            (self.root if above == "root" else self.nodes[above, ""]).adopt(node)
        for leaf, amount in used.items():
            node = self.nodes[leaf]
            while node:
                node.usage += amount
                node = node.parent
        self.users = sum(node.is_user for node in self.nodes.values())

    def classic(self, leaf: Leaf, options) -> float:
        node, share = self.nodes[leaf], 1.0
        while node.parent:
            share *= node.due
            node = node.parent
        if share == 0:
            return 0.0
        return 2 ** -(self.effective(self.nodes[leaf]) / share / float(options.damping)) if self.root.usage > 0 else 1.0

    def effective(self, node: Node) -> float:
        part = node.usage / self.root.usage
        return part if node.parent is self.root else part + (self.effective(node.parent) - part) * node.due

    def rank(self, leaf: Leaf) -> float:
        self.left = self.given = self.users
        self.factors: dict[int, float] = {}
        self.walk(self.root.children, False)
        return self.factors[id(self.nodes[leaf])]

    def walk(self, siblings: list[Node], tied: bool) -> None:
        """Users before accounts where they are equal; equal accounts are one."""
        siblings = sorted(siblings, key=lambda node: (-node.level, not node.is_user))
        before = None
        while siblings:
            node = siblings.pop(0)
            tied = tied or node.level == before
            before = node.level
            if node.is_user:
                if not tied:
                    self.given = self.left
                self.factors[id(node)] = self.given / self.users
                self.left -= 1
            else:
                merged = list(node.children)
                while siblings and siblings[0].level == node.level:
                    merged += siblings.pop(0).children
                self.walk(merged, tied)
            tied = False


def association_factor(job, options) -> float:
    """The priority of a job's user in the account, or of the nearest account above that has one, of the largest."""
    known = options.association_priorities
    above = {account: parent or "root" for account, user, parent, _ in options.tree if not user}
    found, account = known.get((job.account, str(job.user))), job.account
    while found is None:
        found = known.get((account, ""), 0 if account == "root" else None)
        account = above.get(account, "root")
    return found / max(known.values()) if found else 0.0
