"""Pictures of job logs and failure logs."""
