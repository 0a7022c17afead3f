"""Failure logs: reading every known format, fitting a log to a machine and a span, statistics."""
