"""Tabular oracle of the ladder: says before a neural run whether a mechanism can show at all."""
