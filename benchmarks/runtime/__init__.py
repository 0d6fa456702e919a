"""Threads and sizes that fit the machine."""
