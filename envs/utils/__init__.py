"""Helpers without a notion of an environment: HTTP, files, statistics."""
