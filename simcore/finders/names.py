"""The finders of free boxes by the names of the parameter ``finder``, each with a sentence."""

FINDERS = {
    "columns": "Ours: bit masks of columns, and a list of the maximal free boxes. The default, and the fastest.",
    "exhaustive": "Every shape at every base, node by node (krevat2003, ch. 3).",
    "pop": "Projection of partitions: tables of free runs, planes projected onto each other (krevat2003, ch. 3).",
    "divisor": "Shapes whose sides divide the size, runs of free cross sections (oliner2004, appendix).",
}
"""Their places are their numbers in the block of a search."""
