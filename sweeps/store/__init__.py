"""The store of a sweep: journals, chunks, per-job results, packing and merging."""
