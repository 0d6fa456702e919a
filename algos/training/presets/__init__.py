"""Ready settings of published runs: what to train, on what, and what it takes.

from turngym.algos import train
from turngym.algos.presets import preset

train(preset("search-r1-grpo-3b").config(model="models/Qwen2.5-3B"), "runs/search-r1")

What it takes is worked out by :func:`turngym.algos.training.presets.plan.plan`, without loading
anything.
"""

from ....envs.core.errors import UnknownNameError
from . import arpo, pasa, search_r1, tarl, tree_grpo
from .preset import Preset, Published
from .shapes import SHAPES, ModelShape, shape_of

PRESETS: dict[str, Preset] = {
    p.name: p for module in (search_r1, tree_grpo, arpo, tarl, pasa) for p in module.PRESETS
}


def preset(name: str) -> Preset:
    """A preset by name.

    Raises:
        UnknownNameError: There is none; names the nearest.
    """
    if name not in PRESETS:
        raise UnknownNameError("preset", name, PRESETS)
    return PRESETS[name]


__all__ = ["PRESETS", "SHAPES", "ModelShape", "Preset", "Published", "preset", "shape_of"]
