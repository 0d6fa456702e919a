"""Retrieval at scale: indexes of large corpora, and a server that searches them."""
