"""Evaluation of models, prompting agents and planners on a split."""
