"""Published task files: tau-bench and tau2."""
