from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from turngym.algos.runs.plots import WINDOW, _mean, draw_curve, draw_runs


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


def with_greedy(rows: list[dict[str, float]]) -> list[dict[str, float]]:
    """Every other evaluation is greedy too."""
    for row in rows[::2]:
        greedy = {k.replace("/success", "/greedy_success"): v for k, v in row.items() if "/su" in k}
        row |= {k: v for k, v in greedy.items() if k.startswith("eval/")}
    return rows


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


def test_greedy_scores_have_a_panel_of_their_own(tmp_path: Path) -> None:
    both, alone, cold = (tmp_path / name for name in ("both.png", "alone.png", "cold.png"))
    draw_curve(with_greedy(rows(("dev",))), both, "grpo", 1.0)
    draw_curve(rows(("dev",)), alone, "grpo", 1.0)
    draw_curve(with_greedy(rows(("dev",))), cold, "grpo", 0.0)  # both are greedy: one panel
    width = pixels(alone).shape[1]
    assert pixels(both).shape[1] == 1.5 * width
    assert pixels(cold).shape[1] == width
    third = pixels(both)[:, width:, :3]
    blue = np.abs(third - np.array([0x1F, 0x6F, 0xEB]) / 255).sum(-1) < 0.1
    assert blue.sum() > 100


def test_the_mean_of_runs_spans_what_all_of_them_have() -> None:
    at, values = _mean([([1.0, 3.0, 5.0], [0.0, 2.0, 4.0]), ([2.0, 4.0], [1.0, 1.0])])
    assert at == [2.0, 3.0, 4.0]
    assert values == [1.0, 1.5, 2.0]


LONG = "grpo, " + ", ".join(f"setting_{i} {i}.000" for i in range(20))


def test_long_titles_and_labels_stay_in_the_picture(tmp_path: Path) -> None:
    """The legend of long labels lay on the curves, and both were cut off at the edge."""
    short, long = tmp_path / "short.png", tmp_path / "long.png"
    runs = [with_steps(rows(()))] * 2
    draw_runs({"grpo": runs, "rloo": runs}, short, title="Two")
    draw_runs({LONG: runs, LONG + " b": runs}, long, title=LONG)
    assert pixels(long).shape[0] > pixels(short).shape[0] + 100
    edge = pixels(long)[:, -3:, :3]
    assert bool((edge > 0.99).all()), "something reaches the right edge"
    curve, single = tmp_path / "curve.png", tmp_path / "single.png"
    draw_curve(rows(("dev",)), curve, LONG)
    draw_curve(rows(("dev",)), single, "grpo")
    assert pixels(curve).shape[0] > pixels(single).shape[0]
    assert bool((pixels(curve)[:, -3:, :3] > 0.99).all())


def test_pictures_say_that_their_lines_are_means_over_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib.figure import Figure

    drawn: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: drawn.append(figure))
    draw_runs({"grpo": [with_steps(rows(()))]}, tmp_path / "runs.png")
    draw_curve(rows(("dev",)), tmp_path / "curve.png")
    runs, curve = drawn
    said = f"mean over {WINDOW} steps"
    assert [axes.get_title("left") for axes in runs.axes] == [f"Solved in training, {said}"] * 2
    assert runs.legends[0].get_title().get_text() == said
    labels = curve.axes[1].get_legend_handles_labels()[1]
    assert labels[0] == f"training rollouts, {said}"


def test_every_label_has_a_line_of_its_own_and_every_tick_a_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sixth label had the colour of the first, and ticks from 50.0 to 50.8 % said 50%."""
    from matplotlib.figure import Figure

    drawn: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: drawn.append(figure))
    near = [
        {**row, "rollout/success_frac": 0.5 + row["step"] / 5000} for row in with_steps(rows(()))
    ]
    draw_runs({f"row {i}": [near, near] for i in range(12)}, tmp_path / "runs.png")
    axes = drawn[0].axes[0]
    looks = {(line.get_color(), line.get_linestyle()) for line in axes.lines}
    assert len(looks) == 12
    drawn[0].canvas.draw()
    shown = [tick.get_text() for tick in axes.get_yticklabels()]
    assert len(set(shown)) == len(shown) > 2
    draw_runs({"all": [[row | {"rollout/success_frac": 1.0} for row in near]]}, tmp_path / "b.png")
    low, high = drawn[1].axes[0].get_ylim()
    assert low < 1.0 < high <= 1.02  # no run solves more than all


def with_steps(rows: list[dict[str, float]]) -> list[dict[str, float]]:
    return [row | {"budget/optimizer_steps": row["step"]} for row in rows]


NAMES = ("$\\frac{$", "_mine", "a $x_1$ b", "\ud800\x00\u202e", "costs $5 or \\$6")
"""Names that matplotlib reads as mathematics, leaves out of legends, or cannot draw."""
SHOWN = ("$\\frac{$", " _mine", "a $x_1$ b", "␚␚␚", "costs $5 or \\$6")


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is drawn as plain text."""
    from matplotlib.backends.backend_agg import RendererAgg

    drawn: list[str] = []
    draw = RendererAgg.draw_text

    def keep(self: Any, gc: Any, x: Any, y: Any, s: str, prop: Any, angle: Any, **how: Any) -> None:
        if not how.get("ismath"):
            drawn.append(s)
        draw(self, gc, x, y, s, prop, angle, **how)

    monkeypatch.setattr(RendererAgg, "draw_text", keep)
    return drawn


@pytest.mark.filterwarnings("ignore:Glyph")
def test_names_of_sets_are_shown_as_they_are(tmp_path: Path, texts: list[str]) -> None:
    draw_curve(rows(NAMES), tmp_path / "curve.png", title=" ".join(NAMES[:3]))
    assert " ".join(NAMES[:3]) in texts
    assert {f"{name} (n = 200, 95 % band)" for name in SHOWN} <= set(texts)


@pytest.mark.filterwarnings("ignore:Glyph")
def test_names_of_runs_are_shown_as_they_are(tmp_path: Path, texts: list[str]) -> None:
    found = [row | {"budget/optimizer_steps": row["step"]} for row in rows(())]
    draw_runs({name: [found] for name in NAMES}, tmp_path / "curves.png", title=NAMES[0])
    assert {NAMES[0], *SHOWN} <= set(texts)
