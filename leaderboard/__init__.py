"""Replaying, ranking and showing results.

An entry (:mod:`.entry`) plays a suite (:mod:`.suite`); verification (:mod:`.verify`,
:mod:`.jail`) replays it into a verdict (:mod:`.verdict`); verdicts make boards (:mod:`.board`).
"""
