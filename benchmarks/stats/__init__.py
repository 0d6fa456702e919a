"""Statistics of comparisons: means with intervals, paired tests, pass@k, areas under curves."""

from .areas import area_under, value_at
from .compare import Paired, holm, improvement, paired
from .means import interquartile_mean, stratified, two_stage
from .passes import pass_all, pass_any
from .runs import OverRuns, over_runs

__all__ = [
    "OverRuns",
    "Paired",
    "area_under",
    "holm",
    "improvement",
    "interquartile_mean",
    "over_runs",
    "paired",
    "pass_all",
    "pass_any",
    "stratified",
    "two_stage",
    "value_at",
]
