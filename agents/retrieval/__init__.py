"""Retrieval beyond the core install: dense indexes and the retrieval server."""
