"""What happens to a job after a failure: recovery options, credits, and what they achieve (tang2010, AuCoRe)."""
