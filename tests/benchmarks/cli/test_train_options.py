"""`turngym train`: starting models, sizes, folder names, mistyped paths, saved configurations."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import tyro

from turngym.agents.models.loading import SMALL, is_small
from turngym.agents.models.lora import LoraSettings
from turngym.agents.models.registry.catalogue import CATALOGUE
from turngym.agents.models.registry.fetch import _folder_of
from turngym.agents.warm_start.cache import ensure_starter
from turngym.agents.warm_start.demonstrations import Exchange, refuse_oracle
from turngym.agents.warm_start.settings import StarterProgress, StarterSettings
from turngym.algos.evaluation.result import RunResult
from turngym.algos.learner.learner import _say_not_finite
from turngym.algos.learner.settings import LearnerSettings
from turngym.algos.runs.progress import Silent
from turngym.algos.runs.run_dir import run_name
from turngym.algos.training.config import EnvConfig, EvalConfig, TrainConfig
from turngym.algos.training.settings import TrainSettings, WarmStartSettings
from turngym.algos.training.settings import WarmStart as TrainedStart
from turngym.benchmarks.cli.arguments import expand_dotted
from turngym.benchmarks.cli.env_options import EnvOptions
from turngym.benchmarks.cli.eval import Command as EvalCommand
from turngym.benchmarks.cli.eval import _configure_sets
from turngym.benchmarks.cli.main import REFUSED, main
from turngym.benchmarks.cli.model_options import (
    fitting_size,
    lora,
    made_for,
    model_path,
    starter,
)
from turngym.benchmarks.cli.train import (
    Command,
    configure,
    default_command,
    expand_words,
    print_result,
)
from turngym.envs.core.env import TextEnv
from turngym.envs.core.episode import Outcome
from turngym.envs.core.errors import BadValueError, DataError, UnknownNameError
from turngym.envs.core.noisy_expert import NoisyExpert
from turngym.envs.core.registration import EnvironmentSpec, WarmStart, register_environment
from turngym.envs.core.tasks import Task, parse_index


class Notes(Silent):
    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, text: str) -> None:
        self.said.append(text)


class Sides:
    def sizes(self) -> dict[str, int]:
        return {"train": 30, "dev": 30, "test": 30}

    def task(self, split: str, index: int) -> Task[int]:
        return Task(f"{split}/{index}", split, index, index)

    def index_of(self, split: str, task_id: str) -> int | None:
        return parse_index(split, task_id, 30)


class Hidden(TextEnv[SimpleNamespace, int]):
    """A number that nobody is told."""

    stop = ("\n",)

    def __init__(self) -> None:
        super().__init__(source=Sides(), max_turns=2)

    def begin(self, task: Task[int], random: Any) -> tuple[SimpleNamespace, str]:
        return SimpleNamespace(number=task.payload), "which number? "

    def play(self, episode: Any, action: str) -> Outcome:
        right = action.strip() == str(episode.state.number)
        return Outcome.solved("yes", {"outcome": 1.0}) if right else Outcome.move("no. which? ")


class Oracle(NoisyExpert):
    def choose_action(self, env: Any) -> str:
        return f"{env.episode.state.number}\n"


class Silence(Hidden):
    """Nobody shows how."""

    def expert(self, mistakes: float = 0.0, seed: int = 0) -> Any:
        raise NotImplementedError


register_environment(
    EnvironmentSpec(id="TestSilence-v0", entry_point=Silence, summary="test", hidden=True, sizes=())
)
register_environment(
    EnvironmentSpec(
        id="TestOracle-v0",
        entry_point=Hidden,
        expert=Oracle,
        summary="test",
        hidden=True,
        sizes=(),
        warm_start=WarmStart(starter={"texts": 60, "read_steps": 100_000, "read_least": 0.0}),
    )
)


def test_an_oracle_is_found_out_before_anything_is_trained(tmp_path: Path) -> None:
    with pytest.raises(BadValueError, match="acts on what nobody is shown") as refusal:
        ensure_starter("TestOracle-v0", cache_dir=tmp_path)  # 100,000 steps would take hours
    assert "turn 1" in str(refusal.value)
    assert "--starter blank" in str(refusal.value)


def test_what_an_expert_shows_bounds_what_can_be_imitated() -> None:
    same = [[Exchange("a?", "x"), Exchange("b?", "y")]] * 9
    refuse_oracle([*same, [Exchange("a?", "x"), Exchange("b?", "z")]], 0.9, "it")
    with pytest.raises(BadValueError, match=r"'y' and 'z' in turn 2.* at most 90%"):
        refuse_oracle([*same, [Exchange("a?", "x"), Exchange("b?", "z")]], 0.95, "it")
    # other observations are other places, whatever is done there
    refuse_oracle([[Exchange(f"{n}?", f"{n}")] for n in range(9)], 1.0, "it")
    refuse_oracle([[Exchange("?", "x")] * n for n in range(1, 4)], 1.0, "it")


def test_starters_of_both_kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path))
    blank = Path(starter("TestOracle-v0", Silent(), kind="blank"))
    assert json.loads((blank / "starter.json").read_text())["env_id"] == "TestOracle-v0"
    assert is_small(str(blank))
    with pytest.raises(
        BadValueError, match="--starter imitate: TestSilence-v0 has no scripted expert"
    ):
        starter("TestSilence-v0", Silent(), kind="imitate")
    with pytest.raises(BadValueError, match="--starter blank: does not go with --model"):
        configure(Command(env="TestOracle-v0", model=str(blank), starter="blank"), Silent())
    assert StarterSettings().reader == "expert"


def test_a_starter_tells_when_its_reading_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    class Told(Silent):
        texts: ClassVar[list[str]] = []

        def update(self, fraction: float, text: str = "") -> None:
            assert 0 <= fraction <= 1
            self.texts.append(text)

    def build(_: str, *, on_progress: Any, **__: Any) -> Path:
        on_progress(StarterProgress("reading", 5, 1000, 0.5, 0.995))
        on_progress(StarterProgress("reading", 6, 1000, 0.5, 0.98, 0.25, 0.9))
        on_progress(StarterProgress("erring", 1, 2, 0.99))
        return Path("made")

    monkeypatch.setattr("turngym.agents.warm_start.cache.ensure_starter", build)
    assert starter("SearchQA-v0", Told()) == "made"
    assert Told.texts == [
        "reading, 50% reproduced, done at 99.5%",
        "reading, 50% greedily and 25% sampled reproduced, done at 98% and 90%",
        "erring, 99% reproduced",
    ]


def test_a_model_plays_what_it_was_made_for(tmp_path: Path) -> None:
    notes = Notes()
    made = made_for(None, "SearchQA-v0")
    assert made == {"size": "micro", "hops": (1, 2)}
    free = EnvConfig(id="SearchQA-v0")
    assert fitting_size(free, made, notes).settings == made
    assert "--env.size micro" in notes.said[0]
    assert "give --size for another" in notes.said[0]
    notes.said.clear()
    assert fitting_size(EnvConfig(id="A-v0"), {"max_turns": 4}, notes).settings == {"max_turns": 4}
    assert notes.said[0].startswith("--env.max_turns 4: ")
    assert notes.said[0].endswith("give --env.max_turns for another")  # it has no size
    notes.said.clear()
    hops = EnvConfig(id="SearchQA-v0", settings={"hops": 3})
    assert fitting_size(hops, made, notes).settings == {"size": "micro", "hops": 3}
    for settings in ({"size": "full"}, {"data": "mine.jsonl"}):
        given = replace(free, settings=settings)
        notes.said.clear()
        assert fitting_size(given, made, notes).settings == settings
        assert notes.said == []
    assert fitting_size(free, {}, notes) is free
    model = tmp_path / "model"
    model.mkdir()
    (model / "starter.json").write_text('{"env_id": "A-v0", "env_kwargs": {"size": "micro"}}')
    assert made_for(str(model), "A-v0") == {"size": "micro"}
    assert made_for(str(model), "B-v0") == {}
    step = tmp_path / "run" / "checkpoints" / "step-000003"
    step.mkdir(parents=True)
    config = {"env": {"id": "A-v0", "settings": {"size": "tiny"}}}
    (tmp_path / "run" / "config.json").write_text(json.dumps(config))
    assert made_for(str(step), "A-v0") == {"size": "tiny"}
    assert made_for(str(tmp_path), "A-v0") == {}


def test_small_models_take_small_settings(tiny_model: Path) -> None:
    assert is_small(str(tiny_model))
    assert not is_small("organisation/model")
    assert SMALL < 34_000_000
    notes = Notes()
    options: dict[str, Any] = {"env": "Letters-v0", "model": str(tiny_model), "eval_split": ""}
    small, folder = configure(Command(**options), notes)
    assert any("small models" in line for line in notes.said)
    large, _ = configure(Command(**options, small=False), Silent())
    assert small.recipe.optim.lr > large.recipe.optim.lr
    assert folder == Path("runs") / f"grpo-letters-{tiny_model.name}-seed0"


def write_questions(folder: Path) -> EnvOptions:
    """A file of questions, which is the split train alone, and one of passages."""
    asked = {"id": "q0", "question": "Who painted it?", "golden_answers": ["Pia Clay"]}
    (folder / "asked.jsonl").write_text(json.dumps(asked) + "\n")
    passage = {"id": "0", "contents": "It\nPia Clay painted it."}
    (folder / "passages.jsonl").write_text(json.dumps(passage) + "\n")
    return EnvOptions(data=str(folder / "asked.jsonl"), corpus=str(folder / "passages.jsonl"))


def test_a_file_of_questions_is_trained_on_and_not_evaluated(
    tiny_model: Path, tmp_path: Path
) -> None:
    short = replace(write_questions(tmp_path), env_arg=("prompt=none", "max_turns=2"))
    options: dict[str, Any] = {"env": "SearchQA-v0", "env_options": short}
    notes = Notes()
    config, _ = configure(Command(**options, model=str(tiny_model)), notes)
    assert config.evals == ()
    assert any("no split 'dev': nothing is evaluated" in line for line in notes.said)
    config, _ = configure(Command(**options, model=str(tiny_model), eval_split="tset"), Silent())
    with pytest.raises(UnknownNameError, match="unknown split 'tset'"):
        config.evals[0].make()


def test_a_model_of_a_small_world_is_scored_on_files(tmp_path: Path) -> None:
    given = write_questions(tmp_path)
    options = EnvOptions(corpus=given.corpus)
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "starter.json").write_text(
        '{"env_id": "SearchQA-v0", "env_kwargs": {"size": "micro"}}'
    )
    command = EvalCommand(
        agent=(str(tmp_path),), eval_data=(f"mine={given.data}",), env_options=options
    )
    (mine,) = _configure_sets(command)[1]
    assert mine.make().base_env.source.sizes() == {"train": 1}


def test_eval_names_the_options_that_choose_other_tasks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = write_questions(tmp_path)
    words = ["eval", "--env", "SearchQA-v0", "--agent", "random", "--data", str(given.data)]
    assert main([*words, "--corpus", str(given.corpus)]) == REFUSED
    said = capsys.readouterr().err.replace("\n", " ")
    assert "unknown split 'dev'. Known: train. Choose one with --split" in said


def test_folders_of_different_runs_have_different_names() -> None:
    assert run_name("grpo", "SearchQA-v0", {"size": "micro"}, "starter", 0) == (
        "grpo-searchqa-micro-starter-seed0"
    )
    runs = {
        run_name(*words)
        for words in (
            ("grpo", "A-v0", {}, "starter", 0),
            ("ppo", "A-v0", {}, "starter", 0),
            ("grpo", "B-v0", {}, "starter", 0),
            ("grpo", "A-v0", {"size": "micro"}, "starter", 0),
            ("grpo", "A-v0", {}, "blank", 0),
            ("grpo", "A-v0", {}, "Org/Some Model", 0),
            ("grpo", "A-v0", {}, "starter", 1),
            ("grpo", "A-v0", {}, "runs/one/checkpoints/step-000010", 0),
            ("grpo", "A-v0", {}, "runs/two/checkpoints/step-000010", 0),
        )
    }
    assert len(runs) == 9
    assert "grpo-a-some_model-seed0" in runs


@pytest.mark.parametrize("name", ["./absent", "runs/absent", "~/absent", "a/b/c", "/absent", "x/"])
def test_a_mistyped_path_is_no_model_of_a_hub(name: str) -> None:
    with pytest.raises(BadValueError, match="no such folder or file here"):
        model_path(name)


def test_names_of_a_hub_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert model_path("organisation/model") == "organisation/model"
    Path("organisation").mkdir()  # then it is meant as a folder
    with pytest.raises(BadValueError, match="no such folder"):
        model_path("organisation/model")


@pytest.mark.parametrize(
    "given", [["--lora-alpha", "8"], ["--lora-target", "q_proj"], ["--lora-rslora"]]
)
def test_adapters_without_a_rank_are_refused(given: list[str], tiny_model: Path) -> None:
    words = ["--env", "Letters-v0", "--model", str(tiny_model), *given]
    with pytest.raises(BadValueError, match="--lora-rank N"):
        configure(tyro.cli(Command, args=words), Silent())


def test_no_option_at_all_leaves_every_default() -> None:
    assert expand_words([]) == []
    assert default_command([]) is None


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (["--minutes", "nan"], "all finite"),
        (["--minutes", "inf"], "all finite"),
        (["--seed", str(2**63)], "2\\*\\*63 - 1"),
    ],
)
def test_numbers_that_never_end_or_fit_are_refused(
    given: list[str], reason: str, tiny_model: Path
) -> None:
    words = ["--env", "Letters-v0", "--model", str(tiny_model), *given]
    with pytest.raises(BadValueError, match=reason):
        configure(tyro.cli(Command, args=words), Silent())


@pytest.mark.parametrize("warm", [False, True])
def test_a_model_of_the_catalogue_is_found_in_another_cache(
    warm: bool, tiny_model: Path, tmp_path: Path
) -> None:
    config, _ = configure(Command(env="Letters-v0", model=str(tiny_model)), Silent())
    resolved = config.resolved("digest")
    there = Path("/elsewhere/models") / _folder_of(CATALOGUE["smollm2-135m"]).name
    if warm:
        settings = dataclasses.asdict(WarmStartSettings(episodes=4))
        resolved |= {"model": "/gone", "warm_start": {"base": str(there), "settings": settings}}
    else:
        resolved["model"] = str(there)
    (tmp_path / "config.json").write_text(json.dumps(resolved))
    found = default_command(["--config", str(tmp_path)])
    assert found is not None
    assert found.model == "smollm2-135m"
    assert found.warm.warm_start == (4 if warm else 0)


@pytest.mark.parametrize(
    ("text", "error", "reason"),
    [
        ("{}", DataError, "no configuration of a run: it has no 'lora'; expected the config.json"),
        ("[1]", DataError, "config.json"),
        (None, DataError, "is not a file"),
    ],
)
def test_what_is_no_configuration(
    text: str | None, error: type[Exception], reason: str, tmp_path: Path
) -> None:
    if text is not None:
        (tmp_path / "config.json").write_text(text)
    with pytest.raises(error, match=reason):
        default_command(["--config", str(tmp_path)])


def test_a_recipe_that_is_not_registered_so_is_refused(
    tiny_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, _ = configure(Command(env="Letters-v0", model=str(tiny_model)), Silent())
    resolved = config.resolved("digest")
    resolved["recipe"]["credit"]["type"] = "Mine"
    file = tmp_path / "config.json"
    file.write_text(json.dumps(resolved))
    assert main(["train", "--config", str(file)]) == 2
    assert "credit.type differ" in capsys.readouterr().err.replace("\n", " ")
    assert (TrainSettings().seed, LearnerSettings().optimizer) == (0, "adamw")


def saved(folder: Path, model: Path, **changes: Any) -> TrainConfig:
    """Write what a run of the letters leaves behind, with changes made in Python."""
    config, _ = configure(Command(env="Letters-v0", model=str(model), eval_n=4), Silent())
    config = replace(config, **changes)
    (folder / "config.json").write_text(json.dumps(config.resolved("digest")))
    return config


LETTERS = EnvConfig(id="Letters-v0")
OTHERS = WarmStartSettings(episodes=4, split="dev", seed=3)


def imitated(settings: WarmStartSettings = OTHERS, **env_settings: Any) -> TrainedStart:
    return TrainedStart(
        base="base",
        base_digest="x",
        env_id="Letters-v0",
        env_settings=env_settings,
        settings=settings,
        action_tokens=4,
        context_tokens=9,
    )


@pytest.mark.parametrize(
    ("changes", "name", "way_out"),
    [
        (
            {"evals": (EvalConfig(name="mine", env=LETTERS, split="dev", n=4),)},
            "evals",
            ["--eval-split", "dev"],
        ),
        ({"evals": (EvalConfig(name="last", env=LETTERS, split="", n=4),)}, "evals", None),
        (
            {"evals": (EvalConfig(env=EnvConfig(id="Letters-v0", settings={"count": 3})),)},
            "evals",
            None,
        ),
        ({"warm_start": imitated()}, "warm_start.settings.split", ["--warm-start", "0"]),
        (
            {"warm_start": imitated(WarmStartSettings(episodes=4, seed=3))},
            "warm_start.settings.seed",
            ["--warm-start=0"],
        ),
        (
            {"warm_start": imitated(WarmStartSettings(episodes=4, render="plain"))},
            "warm_start.settings.render",
            None,
        ),
        (
            {"warm_start": imitated(WarmStartSettings(episodes=4), count=3)},
            "warm_start.env_settings",
            None,
        ),
    ],
)
def test_what_the_command_line_cannot_say_of_a_run_is_refused_by_name(
    changes: dict[str, Any],
    name: str,
    way_out: list[str] | None,
    tiny_model: Path,
    tmp_path: Path,
) -> None:
    saved(tmp_path, tiny_model, **changes)
    given = ["--config", str(tmp_path)]
    with pytest.raises(BadValueError, match=rf"cannot say {re.escape(name)} as it is there: "):
        default_command(given)
    if way_out:
        assert default_command([*given, *way_out]) is not None


def test_a_setting_that_this_version_does_not_know_is_refused(
    tiny_model: Path, tmp_path: Path
) -> None:
    resolved = saved(tmp_path, tiny_model).resolved("digest")
    resolved["learner"]["warp"] = 9
    resolved["not_given"] = None
    (tmp_path / "config.json").write_text(json.dumps(resolved))
    with pytest.raises(BadValueError, match=r"learner\.warp as it is there: 9; .* nothing"):
        default_command(["--config", str(tmp_path)])


@pytest.mark.parametrize("rslora", [False, True])
def test_adapters_of_a_run_are_said_whole(rslora: bool, tiny_model: Path, tmp_path: Path) -> None:
    made = LoraSettings(rank=2, alpha=4.0, targets=("q_proj", "v_proj"), rslora=rslora)
    saved(tmp_path, tiny_model, lora=made)
    found = default_command(["--config", str(tmp_path)])
    assert found is not None
    assert lora(found.lora) == made


def test_what_is_advised_after_a_loss_that_is_not_finite_can_be_done(
    tiny_model: Path, tmp_path: Path
) -> None:
    """The words of the message are a run with another learning rate, from the checkpoint or not."""
    start = imitated(WarmStartSettings(episodes=4, batch=2))
    saved(tmp_path, tiny_model, warm_start=start)
    checkpoint = tmp_path / "checkpoints" / "step-000002"
    shutil.copytree(tiny_model, checkpoint)
    (checkpoint / "trainer").mkdir()
    (checkpoint / "trainer" / "state.json").write_text('{"files": {}, "progress": {}}')
    said = _say_not_finite("grpo", 3, float("nan"), {})
    (advised,) = re.findall(r"turngym train (.*?)\. ", said)
    for gone in ([], ["--model", "--warm-start"]):
        words = advised.replace("RUN", str(tmp_path)).replace("NEW", str(tmp_path / "new")).split()
        words[words.index("RATE")] = "1e-5"
        for option in gone:
            at = words.index(option)
            del words[at : at + 2]
        words = expand_dotted(words)
        command = tyro.cli(Command, args=words, default=default_command(words))
        if gone:  # as the run began, which imitated
            assert (command.model, command.warm.warm_start) == ("base", 4)
            continue
        config, folder = configure(command, Silent())
        assert (config.model, config.warm_start) == (str(checkpoint), None)
        assert config.recipe.optim.lr == 1e-5
        assert folder == tmp_path / "new"


@pytest.mark.parametrize(
    ("full", "cut", "told"),
    [
        (0.19, 0.004, ["19% of the paths ended because their context was full (--max-context)"]),
        (None, 0.25, ["25% of the actions were cut at their limit (--max-tokens)"]),
        (0.001, None, []),
    ],
)
def test_a_run_tells_what_its_limits_cut(
    full: float | None, cut: float | None, told: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    counts = dict.fromkeys(("steps", "sampled_tokens", "env_turns", "seconds", "seed"), 1)
    names = dict.fromkeys(("recipe", "env_id", "config_digest", "model_digest"), "x")
    limits = {"context_full_frac": full, "cut_actions_frac": cut}
    result = RunResult(**counts, **names, **limits, before=[], after=[])  # type: ignore[arg-type]
    print_result(result, Path("run"))
    said = capsys.readouterr()
    lines = (said.out + said.err).splitlines()
    assert [line for line in lines if "% of the" in line] == told


def test_a_run_names_the_files_that_it_has_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = dict.fromkeys(("steps", "sampled_tokens", "env_turns", "seconds", "seed"), 1)
    names = dict.fromkeys(("recipe", "env_id", "config_digest", "model_digest"), "x")
    result = RunResult(**counts, **names, before=[], after=[])  # type: ignore[arg-type]
    for name in ("metrics.jsonl", "result.json"):
        (tmp_path / name).touch()
    for name in ("trajectories", "checkpoints"):
        (tmp_path / name).mkdir()
    print_result(result, tmp_path)
    said = capsys.readouterr()
    labels = [line.split()[0] for line in (said.out + said.err).splitlines() if line]
    assert labels[-2:] == ["metrics", "result"]
    assert not {"curve", "transcripts", "model"} & set(labels)
