"""Running a sweep: tasks, their order, progress, and what workers do."""
