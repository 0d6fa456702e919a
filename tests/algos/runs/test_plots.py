from __future__ import annotations

from pathlib import Path

import numpy as np

from turngym.algos.runs.plots import draw_curve


def rows(sets: tuple[str, ...]) -> list[dict[str, float]]:
    found: list[dict[str, float]] = []
    for step in range(0, 41):
        row: dict[str, float] = {"step": step, "budget/tokens": 2000.0 * step}
        if step:
            row |= {"rollout/return_mean": step / 50, "rollout/success_frac": step / 50}
        found.append(row)
        if step % 10 == 0:
            seen: dict[str, float] = {"step": step, "budget/tokens": 2000.0 * step}
            for name in sets:
                for what, key in (("return", "return_mean"), ("success", "success_frac")):
                    mean = 0.1 * len(name) + step / 90
                    seen[f"eval/{name}/{key}"] = mean
                    seen[f"eval/{name}/{what}_low95"] = mean - 0.05
                    seen[f"eval/{name}/{what}_high95"] = mean + 0.05
                seen[f"eval/{name}/n"] = 200
            found.append(seen)
    return found


def pixels(path: Path) -> np.ndarray:
    from matplotlib.image import imread

    return imread(path)


def test_curve_shows_bands_and_training(tmp_path: Path) -> None:
    path = tmp_path / "curve.png"
    draw_curve(rows(("dev", "others")), path)
    image = pixels(path)
    assert image.shape[1] > 1200
    blue = np.abs(image[..., :3] - np.array([0x1F, 0x6F, 0xEB]) / 255).sum(-1) < 0.1
    orange = np.abs(image[..., :3] - np.array([0xD9, 0x48, 0x0F]) / 255).sum(-1) < 0.1
    assert blue.sum() > 200
    assert orange.sum() > 200


def test_a_run_without_anything_still_draws(tmp_path: Path) -> None:
    draw_curve([], tmp_path / "curve.png")
    assert pixels(tmp_path / "curve.png").size > 0
