"""`turngym curves`: which runs are one line, what is drawn, what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from matplotlib.image import imread

from turngym.algos.runs.plots import COLOURS
from turngym.benchmarks.cli.curves import label_runs
from turngym.benchmarks.cli.main import REFUSED, main


def config(name: str = "grpo", seed: int = 0, lr: float = 1e-5, **more: Any) -> dict[str, Any]:
    env = {"id": "SearchQA-v0", "settings": {"hops": 1}}
    recipe = {"name": name, "optim": {"lr": lr}}
    return {"seed": seed, "env": env, "recipe": recipe, "budget": {"steps": seed + 3}, **more}


def write_run(folder: Path, about: dict[str, Any], steps: int = 8) -> str:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(about))
    rows = [
        {
            "step": step,
            "rollout/success_frac": step / 10 + about["seed"] / 50,
            "rollout/return_mean": 2.0,
            "budget/tokens": 100.0 * step,
            "budget/optimizer_steps": float(step),
        }
        for step in range(1, steps + 1)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(folder)


def count_pixels(picture: Path, colour: str) -> int:
    wanted = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return int((np.abs(imread(picture)[..., :3] - wanted).sum(-1) < 0.1).sum())


def test_a_part_that_only_some_runs_have_is_named_once() -> None:
    def warm(batch: int) -> dict[str, Any]:
        settings = {"type": "WarmStartSettings", "episodes": 12, "batch": batch}
        return config(model="/cache/warm", warm_start={"base": "/a/one", "settings": settings})

    lora = {"type": "LoraSettings", "rank": 4, "alpha": 8.0}
    plain = config(model="/cache/warm", lora=None)
    episodes = "warm_start.settings.episodes"
    assert label_runs([plain, warm(3)]) == [f"grpo, {episodes} None", f"grpo, {episodes} 12"]
    assert label_runs([plain, warm(3), warm(4)])[2] == (
        f"grpo, {episodes} 12, warm_start.settings.batch 4"
    )
    assert label_runs([plain, plain | {"lora": lora}]) == [
        "grpo, lora.rank None",
        "grpo, lora.rank 4",
    ]


def test_seeds_are_one_label_and_what_differs_is_named() -> None:
    seeds = [config(seed=0), config(seed=1)]
    assert label_runs(seeds) == ["grpo", "grpo"]
    assert label_runs([*seeds, config("rloo", lr=1e-4)]) == ["grpo", "grpo", "rloo"]
    rates = label_runs([config(), config(lr=1e-4), config("rloo")])
    assert rates == ["grpo, optim.lr 1e-05", "grpo, optim.lr 0.0001", "rloo"]
    two_hops = config() | {"env": {"id": "SearchQA-v0", "settings": {"hops": 2}}}
    assert label_runs([config(), two_hops]) == ["grpo, hops 1", "grpo, hops 2"]
    models = [config(model="/a/b/one"), config(model="/a/two")]
    assert label_runs(models) == ["grpo, model one", "grpo, model two"]
    digests = [one | {"model_digest": one["model"]} for one in models]
    assert label_runs(digests) == ["grpo, model one", "grpo, model two"]
    watched = [config(seed=seed, eval_every=seed, checkpoint_every=9 * seed) for seed in (1, 2)]
    assert label_runs(watched) == ["grpo", "grpo"]  # training is the same, whatever is kept of it


def test_every_group_of_runs_has_a_colour(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [write_run(tmp_path / f"r{seed}", config(seed=seed)) for seed in range(3)]
    runs.append(write_run(tmp_path / "other", config("rloo"), steps=5))
    out = tmp_path / "new" / "curves.png"
    assert main(["curves", *runs, "--out", str(out), "--title", "Two"]) == 0
    assert "grpo (3), rloo (1)" in " ".join(capsys.readouterr().out.split())
    assert min(count_pixels(out, colour) for colour in COLOURS[:2]) > 300
    assert count_pixels(out, COLOURS[2]) == 0
    assert main(["curves", runs[0], "--measure", "return", "--out", str(tmp_path / "r.svg")]) == 0
    assert (tmp_path / "r.svg").read_text().startswith("<?xml")


def test_a_run_that_is_named_twice_is_one_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = write_run(tmp_path / "first", config(seed=0))
    second = write_run(tmp_path / "second", config(seed=1))
    monkeypatch.chdir(tmp_path)
    assert main(["curves", first, second, "first/", "./second", "--out", "c.png"]) == 0
    assert "grpo (2)" in capsys.readouterr().out
    other = write_run(tmp_path / "other", config("rloo"))
    assert main(["curves", first, other, "first", "--out", "c.png"]) == 0
    assert "grpo (1), rloo (1)" in " ".join(capsys.readouterr().out.split())  # in their order


def test_what_cannot_be_drawn_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "run", config())
    new = write_run(tmp_path / "new", config(), steps=0)
    bare = Path(write_run(tmp_path / "bare", {"seed": 0}))
    (bare / "config.json").write_text("{}")
    (bare / "metrics.jsonl").write_text('{"rollout/return_mean": 1.0, "budget/tokens": 9.0}\n')
    for words, said in (
        ([], "name at least one run directory"),
        ([str(tmp_path)], "is not a run directory: it holds no config.json"),
        ([str(tmp_path / "gone")], "gone does not exist; expected a run directory"),
        ([run, new], "has no training step yet"),
        ([run, str(bare)], "without rollout/success_frac, budget/optimizer_steps; expected"),
        ([run, "--out", str(tmp_path / "c.docx")], "cannot be written"),
    ):
        assert main(["curves", *words]) == REFUSED
        assert said in " ".join(capsys.readouterr().err.split())
