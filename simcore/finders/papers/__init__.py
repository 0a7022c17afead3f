"""The finders of the papers: exhaustive search, POP and the divisor finder."""
