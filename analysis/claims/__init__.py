"""The claims of the papers as predicates: ``PAPER.toml`` states them, the stores of the experiments decide them."""
