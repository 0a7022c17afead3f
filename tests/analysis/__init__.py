"""Tests of what reads stores."""
