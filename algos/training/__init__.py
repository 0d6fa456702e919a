"""The training loop and its configuration."""
