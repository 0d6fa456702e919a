"""Replaying, ranking and showing results.

An entry (:mod:`.schema.entry`) plays a suite (:mod:`.schema.suite`); verification
(:mod:`.verification`) replays it into a verdict (:mod:`.schema.result`); verdicts make boards
(:mod:`.ranking`).
"""
