"""Retail-v0: a shop's assistant, its tools, its rules and its customers."""
