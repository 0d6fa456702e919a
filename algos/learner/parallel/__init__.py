"""Data-parallel and sharded learning."""
