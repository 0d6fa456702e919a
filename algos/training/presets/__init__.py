"""Settings of published runs, and estimates of the hardware that they need.

    from turngym.algos import train
    from turngym.algos.training.presets import preset

    train(preset("search-r1-grpo-3b").config(model="models/Qwen2.5-3B"), "runs/search-r1")

:func:`turngym.algos.training.presets.plan.plan` estimates memory and time without loading a model.
"""

from ....envs.core.errors import UnknownNameError
from .preset import Preset, Published
from .published_runs import RUNS
from .shapes import SHAPES, ModelShape, shape_of

PRESETS: dict[str, Preset] = {run.name: run for run in RUNS}


def preset(name: str) -> Preset:
    """Return a preset by name.

    Raises:
        UnknownNameError: No such preset; the nearest is named.
    """
    if name not in PRESETS:
        raise UnknownNameError("preset", name, PRESETS)
    return PRESETS[name]


__all__ = ["PRESETS", "SHAPES", "ModelShape", "Preset", "Published", "preset", "shape_of"]
