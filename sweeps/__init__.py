"""Specs, grids, the runner, the store and the command line."""
