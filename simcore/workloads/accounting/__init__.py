"""Job records of real machines: one reader for each format, and one table of jobs that they all give."""
