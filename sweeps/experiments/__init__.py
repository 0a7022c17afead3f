"""Specs shipped with the package, one per figure of the papers."""
