"""The policies: a folder for each role, a file for each policy."""
