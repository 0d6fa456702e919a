"""What a run leaves behind: directory, metrics, plots, provenance."""
