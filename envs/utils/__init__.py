"""Helpers that environments share."""
