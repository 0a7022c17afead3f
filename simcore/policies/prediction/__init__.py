"""Failure predictors: what a scheduler is told about the nodes of a partition."""
