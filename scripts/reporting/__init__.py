"""What a run's report and its export say: gathering from the log, and rendering; no effects."""
