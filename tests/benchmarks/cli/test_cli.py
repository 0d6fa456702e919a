"""The command line: what it prints, what it refuses, and that it starts quickly."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from turngym.algos.evaluation.result import RunResult
from turngym.algos.runs.interrupts import held_interrupts, terminate_as_interrupt
from turngym.benchmarks.cli.arguments import expand_dotted, pairs, values
from turngym.benchmarks.cli.main import COMMANDS, INTERRUPTED, REFUSED, TERMINATED, main
from turngym.envs import read_transcripts
from turngym.envs.core.errors import BadValueError

MICRO = ("--size", "micro")


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The error of a command that must be refused, without a traceback."""
    assert main(words) == REFUSED
    said = capsys.readouterr().err
    assert "Traceback" not in said
    line = said.splitlines()[-1]
    assert line.startswith("error: ")
    return line


@pytest.mark.parametrize("module", ["turngym", "turngym.benchmarks.cli.main"])
def test_the_command_line_runs_as_a_module(module: str) -> None:
    """The one was no module to run, the other printed nothing and was content."""
    words = [sys.executable, "-m", module, "--version"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stdout.partition(" ")[0]) == (0, "turngym"), done.stderr


# ---------------------------------------------------------------- arguments


def test_dotted_options_are_short_for_settings() -> None:
    words = ["train", "--env", "E-v0", "--env.hops", "2", "--recipe.optim.lr=1e-3", "--n", "3"]
    assert expand_dotted(words) == [
        *("train", "--env", "E-v0", "--env-arg", "hops=2"),
        *("--recipe-arg", "optim.lr=1e-3", "--n", "3"),
    ]


def test_a_dotted_option_needs_a_value() -> None:
    with pytest.raises(BadValueError, match=r"--env\.hops: expected a value"):
        expand_dotted(["--env.hops", "--seed", "1"])


def test_values_are_json_or_text() -> None:
    got = values(["a=1", "b=[1, 2]", "c=x y", "d=None", "e=1=2", "f=true"], "--env-arg")
    assert got == {"a": 1, "b": [1, 2], "c": "x y", "d": None, "e": "1=2", "f": True}


@pytest.mark.parametrize("inside", [None, "notes.txt", "config.json"])
def test_no_folder_hides_a_scripted_agent(
    inside: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Folders of experiments are named "expert" and "random"; "heuristic" is PaperCrawler's."""
    monkeypatch.chdir(tmp_path)
    names = ("expert", "random")
    for name in (*names, *(["heuristic"] if inside != "config.json" else [])):
        Path(name, "checkpoints").mkdir(parents=True)  # as a run that has none yet
        if inside is not None:
            Path(name, inside).write_text("{}")
    assert main(["eval", "--agent", *names, *MICRO, "--n", "2"]) == 0
    assert "100.0%" in capsys.readouterr().out
    words = ["eval", "--env", "PaperCrawler-v0", "--agent", "heuristic", *MICRO, "--n", "1"]
    assert main(words) == 0
    assert "heuristic" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["a"], ["=1"], ["a=1", "a=2"]])
def test_bad_pairs_are_refused(words: list[str]) -> None:
    with pytest.raises(BadValueError, match="--eval-data"):
        pairs(words, "--eval-data")


# ---------------------------------------------------------------- lists, play, eval


def test_help_and_lists_are_quick() -> None:
    code = (
        "import json, sys; from turngym.benchmarks.cli.main import main\n"
        "for words in json.loads(sys.argv[1]):\n"
        "    try: main(words)\n    except SystemExit: pass\n"
        "    heavy = {'torch', 'transformers', 'matplotlib'} & sys.modules.keys()\n"
        "    if heavy: sys.exit(f'{words} loads {heavy}')\n"
    )
    listed = (["--help"], ["envs"], ["eval", "--agent", "expert", *MICRO, "--n", "2"])
    heavy = ("train", "demo", "selector", "drrn", "merge", "bench", "claims", "recipes", "view")
    each = json.dumps([*listed, *([name, "--help"] for name in heavy)])
    done = subprocess.run([sys.executable, "-c", code, each], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_commands_are_listed_from_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert main(["--help"]) == 0
    printed = capsys.readouterr().out
    for group in COMMANDS.values():
        for name, summary in group.items():
            assert printed.count(summary) == 2, name


@pytest.mark.parametrize("name", [name for group in COMMANDS.values() for name in group])
def test_every_command_shows_its_options(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with contextlib.suppress(SystemExit):  # commands of commands list these
        assert main([name, "--help"]) == 0
    said = capsys.readouterr().out
    assert said.startswith((f"turngym {name}: ", f"usage: turngym {name} "))


def test_an_unknown_command_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Did you mean 'train'" in refused(["trian"], capsys)


@pytest.mark.parametrize(
    "words",
    [
        ("eval", "--agent", "random", "--env", "Bandit-v0", "--n", "1"),
        ("bench", "--suite", "quick"),
    ],
)
def test_what_is_one_process_is_not_started_as_several(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each process played everything and wrote the same files, or found the folder locked."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert main(words) == REFUSED
    told = capsys.readouterr().err
    assert told.startswith(f"error: {words[0]}: started as 2 processes (WORLD_SIZE)")
    assert "without torchrun" in told
    assert main([words[0], "--help"]) == 0


def test_envs_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["envs"]) == 0
    said = capsys.readouterr().out
    for word in ("SearchQA-v0", "full, micro", "train, dev, test", "0 to 1"):
        assert word in said
    assert "Bandit-v0" not in said
    rows = {line.split()[0]: line for line in said.splitlines() if "-v0 " in line}
    for name, limit in (("ScienceWorld-v0", "100 (micro 40)"), ("Retail-v0", "60 (micro 16)")):
        assert limit in rows[name]
        assert limit.startswith(f"{gym.make(name).unwrapped.max_turns} ")
    assert main(["envs", "--hidden"]) == 0
    said = capsys.readouterr().out
    for word in ("SearchQA-v0", "Bandit-v0", "Spawn-v0", "micro, full"):
        assert word in said


def test_recipes_are_listed_with_their_settings(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recipes"]) == 0
    assert main(["recipes", "grpo"]) == 0
    said = capsys.readouterr().out
    for word in ("ppo", "loss.clip.low", "arXiv 2402.03300"):
        assert word in said


def test_the_expert_plays_for_you(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["play", "SearchQA-v0", *MICRO, "--agent", "expert", "--task", "3"]) == 0
    said = capsys.readouterr().out
    for word in ("Question:", "<search>", "<information>", "reward +1", "solved"):
        assert word in said


def test_failed_is_explained_where_success_is_a_matter_of_degree(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["play", "PaperCrawler-v0", *MICRO, "--agent", "expert", "--task", "4"]) == 0
    said = capsys.readouterr().out
    assert "\nfailed\n(success is a matter of degree here" in said
    assert re.search(r"\n  oracle_recall_at_20 +[\d.]+\n", said), "names and values apart"
    assert main(["play", "SearchQA-v0", *MICRO, "--agent", "null", "--task", "3"]) == 0
    assert "matter of degree" not in capsys.readouterr().out


def test_a_person_plays(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    typed = iter(["", "what?", "  ", "help", "<answer> nobody </answer>"])
    monkeypatch.setattr("rich.console.Console.input", lambda self, prompt="": next(typed))
    monkeypatch.chdir(tmp_path)
    assert main(["play", "SearchQA-v0", *MICRO]) == 0
    said = capsys.readouterr().out
    assert "failed" in said
    assert "In another task one looks like: <search>" in said
    assert "You wrote no action of this environment, which cost you a turn." in said
    assert said.count("An action ends with </search> or </answer>.") == 2  # once for the help
    assert "turn 2 of 5" in said
    assert "turn 3 of 5" not in said  # the help was free
    (played,) = read_transcripts("runs/plays/searchqa-v0.jsonl")
    assert [step.action for step in played.steps] == ["what?", "<answer> nobody </answer>"]
    assert main(["view", "runs/plays/searchqa-v0.jsonl", "--out", "page.html"]) == 0
    assert "nobody" in Path("page.html").read_text()


@pytest.mark.parametrize("stop", [KeyboardInterrupt, EOFError])
def test_who_stops_in_the_middle_keeps_what_was_played(
    stop: type[BaseException],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    typed = iter(["what?"])

    def read(*args: object) -> str:
        for line in typed:
            return line
        raise stop

    monkeypatch.setattr("rich.console.Console.input", read)
    monkeypatch.chdir(tmp_path)
    assert main(["play", "SearchQA-v0", *MICRO]) == 0
    assert "\nstopped.\ntranscript  runs/plays/searchqa-v0.jsonl\n" in capsys.readouterr().out
    (played,) = read_transcripts("runs/plays/searchqa-v0.jsonl")
    assert [step.action for step in played.steps] == ["what?"]


def test_an_agent_that_is_stopped_leaves_what_it_played(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupt(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("turngym.benchmarks.cli.play._reward", interrupt)
    out = tmp_path / "played.jsonl"
    assert main(["play", "SearchQA-v0", *MICRO, "--agent", "random", "--out", str(out)]) != 0
    (played,) = read_transcripts(out)
    assert len(played.steps) == 1


def test_an_agent_s_episode_is_written_where_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["play", "Password-v0", "--agent", "null"]) == 0
    assert list(tmp_path.iterdir()) == []
    assert main(["play", "Password-v0", "--agent", "null", "--out", "x/y.jsonl"]) == 0
    (played,) = read_transcripts("x/y.jsonl")
    assert played.status != "running"
    assert "turngym view x/y.jsonl" in capsys.readouterr().out


@pytest.mark.parametrize("seed", ["-1", "99999999999999999999999"])
def test_a_seed_that_no_episode_has_is_refused(
    seed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A model's episode ended in a traceback."""
    assert main(["play", "Password-v0", "--agent", "expert", "--seed", seed]) == 2
    assert f"--seed {seed}: expected a number from 0 to 2**63 - 2." in capsys.readouterr().err


@pytest.mark.parametrize("name", ["Password-v0", "Game24-v0"])
def test_an_environment_is_described(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["envs", name]) == 0
    said = capsys.readouterr().out
    for word in (
        "Actions",
        "Rewards",
        "Arguments",
        "render_mode",
        "Example episode",
        "▶",
        "status",
    ):
        assert word in said
    assert main(["envs", name, "--hidden"]) == 2
    assert main(["envs", "Pasword-v0"]) == 2
    assert "Did you mean" in capsys.readouterr().err


def test_a_person_stops(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rich.console.Console.input", lambda self, prompt="": "quit")
    assert main(["play", "SearchQA-v0", *MICRO]) == 0
    assert "stopped." in capsys.readouterr().out


def test_untrusted_texts_do_not_control_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    evil = "\x1b[2J\x9b31m\x07"
    monkeypatch.chdir(tmp_path)
    folder = Path(f"{evil}folder")
    folder.mkdir()
    question = {"id": "1", "question": f"where{evil}?", "golden_answers": [f"here{evil}"]}
    (folder / "train.jsonl").write_text(json.dumps(question) + "\n")
    passage = {"id": "1", "contents": f'"{evil}"\nAral{evil} lies here.'}
    (folder / "corpus.jsonl").write_text(json.dumps(passage) + "\n")
    files = ["--data", str(folder / "train.jsonl"), "--corpus", str(folder / "corpus.jsonl")]
    for words in (
        ["play", "SearchQA-v0", *files, "--agent", "random", "--split", "train"],
        ["eval", "--env", "SearchQA-v0", *files, "--agent", "null", "--n", "1", "--split", "train"],
        ["papers", "check", str(folder)],
        ["view", str(folder)],
        ["view", str(folder / "seen.jsonl")],
    ):
        main(words)
        said = "".join(capsys.readouterr())
        assert said.strip(), words
        assert not set(evil) & set(said) - set("[2J31m"), words


def test_agents_are_compared(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "scores.json"
    agents = ("--agent", "expert", "random", "null")
    assert main(["eval", *agents, *MICRO, "--n", "20", "--hops", "1", "2", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "100.0%" in said
    found = {(s["agent"], s["name"]): s for s in json.loads(out.read_text())}
    assert found[("expert", "dev")]["success"]["mean"] == 1.0
    assert found[("random", "dev")]["success"]["mean"] < 0.1
    assert found[("null", "dev")]["success"]["mean"] == 0.0
    assert found[("expert", "dev, hops 1")]["n"] + found[("expert", "dev, hops 2")]["n"] == 20


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("words", "nearest"),
    [
        (["eval", "--agent", "expert", "--env", "SearchQ-v0"], "'SearchQA-v0'"),
        (["eval", "--agent", "exprt", *MICRO], "'expert'"),
        (["eval", "--agent", "expert", "--size", "mcro"], "'micro'"),
        (["eval", "--agent", "expert", *MICRO, "--split", "dve"], "'dev'"),
        (["eval", "--agent", "expert", *MICRO, "--env.top_kk", "3"], "'top_k'"),
        (["play", "SerchQA-v0"], "'SearchQA-v0'"),
        (["play", "SearchQA-v0", *MICRO, "--task", "123456"], "task 123456"),
        (["play", "SearchQA-v0", *MICRO, "--env.max_turns", "0"], "max_turns is 0"),
        (["recipes", "grop"], "'grpo'"),
        (["train", "--recipe", "gropo", *MICRO], "'grpo'"),
        (["train", *MICRO, "--recipe.leaning_rate", "1"], "unknown setting"),
        (["train", *MICRO, "--recipe.lr", "fast"], "optim.lr"),
        (["train", *MICRO, "--env.size", "full"], "give it once"),
        (["train", "--data", "/nowhere/q.jsonl"], "--data"),
        (["train", *MICRO, "--eval-data", "x=/nowhere/q.jsonl"], "--corpus"),
        (["train", *MICRO, "--env.max_turns"], "expected a value"),
        (["train", *MICRO, "--model", "/nowhere/model"], "no such folder"),
        (["view", "--out=~no-such-account/p", "."], "`~no-such-account/p`: ~ stands for"),
        (["view", "~no-such-account/r"], "Give the whole path"),
    ],
)
def test_bad_input_is_one_clear_line(
    words: list[str],
    nearest: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert nearest in refused(words, capsys)


def test_a_missing_package_names_the_extra(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(command: object) -> None:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setattr("turngym.benchmarks.cli.recipes.run", run)
    assert main(["recipes"]) == REFUSED
    assert "turngym[train]" in capsys.readouterr().err


def test_unknown_options_are_refused_by_tyro(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["train", "--lerning-rate", "1"])
    assert caught.value.code == REFUSED
    assert "lerning" in capsys.readouterr().err


def test_a_run_that_has_no_checkpoint_cannot_play(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "checkpoints").mkdir()
    said = refused(["eval", "--agent", str(tmp_path), *MICRO], capsys)
    assert "no checkpoint yet" in said


def test_interrupt_has_its_own_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(command: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("turngym.benchmarks.cli.envs.run", stop)
    assert main(["envs"]) == INTERRUPTED
    assert "stopped" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("number", "line"),
    [
        (errno.ENOSPC, "error: a/b: the disk is full. Make room and run the same command again;"),
        (errno.EROFS, "error: a/b: cannot be used (Read-only file system)."),
        (errno.EACCES, "error: a/b: cannot be used (Permission denied)."),
    ],
)
def test_a_disk_that_refuses_ends_in_one_line(
    number: int, line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(command: object) -> None:
        raise OSError(number, os.strerror(number), "a/b")

    monkeypatch.setattr("turngym.benchmarks.cli.envs.run", fail)
    assert refused(["envs"], capsys).startswith(line)


@pytest.mark.parametrize(
    "error",
    [RuntimeError("can't start new thread"), OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))],
)
def test_a_limit_on_processes_ends_in_one_line(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `ulimit -u` sets it, or a container's number of processes."""

    def fail(command: object) -> None:
        raise error

    monkeypatch.setattr("turngym.benchmarks.cli.envs.run", fail)
    assert refused(["envs"], capsys).startswith("error: no further process or thread can be start")


@pytest.mark.parametrize("ctrl_c", [signal.default_int_handler, signal.SIG_IGN])
@pytest.mark.parametrize("held", [False, True])
def test_sigterm_ends_a_command_with_143(
    ctrl_c: Any, held: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done: list[str] = []

    def stop(command: object) -> None:
        with held_interrupts() if held else terminate_as_interrupt():
            signal.raise_signal(signal.SIGTERM)
            done.append("saved")

    before = signal.signal(signal.SIGINT, ctrl_c)  # a shell's background ignores Ctrl-C
    handler = signal.getsignal(signal.SIGTERM)
    try:
        monkeypatch.setattr("turngym.benchmarks.cli.envs.run", stop)
        assert main(["envs"]) == TERMINATED == 143
        assert done == ["saved"] * held
        assert "stopped" in capsys.readouterr().err
        assert signal.getsignal(signal.SIGTERM) == handler
        monkeypatch.setattr("turngym.benchmarks.cli.envs.run", lambda _: None)
        assert main(["envs"]) == 0
    finally:
        signal.signal(signal.SIGINT, before)


def test_sigterm_ends_a_waiting_command_with_143() -> None:
    code = (
        "import sys; from turngym.benchmarks.cli.main import main; "
        "sys.exit(main(['play', 'Game24-v0']))"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline()  # it plays, and asks for an action
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=30)
    assert child.returncode == TERMINATED


def test_an_interrupt_that_leaves_an_exec_ends_a_command_with_130(tmp_path: Path) -> None:
    """As in the imports of a command, whose dataclasses are executed texts."""
    plugin = tmp_path / "interrupted.py"
    plugin.write_text("exec('raise KeyboardInterrupt')")
    command = [sys.executable, "-m", "turngym", "envs", "--plugin", str(plugin)]
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (child.returncode, child.stderr) == (130, "stopped.\n")


# ---------------------------------------------------------------- training


def write_real_files(folder: Path) -> dict[str, Path]:
    """Small files in the two published formats."""
    files = {name: folder / name for name in ("corpus.jsonl", "train.jsonl", "test.jsonl")}
    places = ["Aral", "Brno", "Cork", "Doha", "Erie"]
    files["corpus.jsonl"].write_text(
        "".join(
            json.dumps({"id": str(i), "contents": f'"{p}"\n{p} lies by the river R{i}. ' * 9})
            + "\n"
            for i, p in enumerate(places)
        )
    )
    for name in ("train.jsonl", "test.jsonl"):
        files[name].write_text(
            "".join(
                json.dumps(
                    {"id": f"{name}{i}", "question": f"river of {p}?", "golden_answers": [f"R{i}"]}
                )
                + "\n"
                for i, p in enumerate(places)
            )
        )
    return files


def test_training_on_files_goes_from_start_to_report_and_on(
    tiny_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = write_real_files(tmp_path)
    run = tmp_path / "run"
    words = [
        *("train", "--recipe", "grpo", "--model", str(tiny_model), "--run-dir", str(run)),
        *("--data", str(files["train.jsonl"]), "--corpus", str(files["corpus.jsonl"])),
        *("--eval-data", f"a={files['test.jsonl']}", f"b={files['train.jsonl']}"),
        *("--env.prompt", "none", "--env.max_turns", "2", "--max-tokens", "6"),
        *("--recipe.n", "2", "--recipe.groups_per_step", "2", "--recipe.minibatches", "1"),
        *("--eval-n", "4", "--device", "cpu"),
    ]
    assert main([*words, "--steps", "1"]) == 0
    result = RunResult.read(run / "result.json")
    assert [s.name for s in result.after] == ["a", "b"]
    assert [s.split for s in result.after] == ["train", "train"]
    assert result.steps == 1
    said = capsys.readouterr()
    assert "curve.png" in said.out
    assert "success, sampled (T 1)" in said.out
    assert "success, greedy" in said.out
    assert "of sharpening" in said.out
    assert "max_observation_chars=" in said.err  # 512 tokens of context

    assert main([*words, "--steps", "2"]) == 0
    assert RunResult.read(run / "result.json").steps == 2
    assert "resuming from step 1" in capsys.readouterr().err

    assert "recipe.optim.lr: was" in refused([*words, "--recipe.lr", "0.5"], capsys)
    capsys.readouterr()
    out = run / "scores.json"
    words = ["eval", "--agent", str(run), *MICRO, "--n", "3", "--max-tokens", "4"]
    assert main([*words, "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "dev, sampled (T 1)" in said
    assert "dev, greedy" in said
    (row,) = json.loads(out.read_text())
    assert (row["temperature"], row["greedy"]["n"]) == (1.0, 3)
    assert main([*words, "--temperature", "0"]) == 0
    assert "sampled" not in capsys.readouterr().out
    assert main(["play", "SearchQA-v0", *MICRO, "--agent", str(run), "--max-tokens", "4"]) == 0


def test_episodes_that_cannot_fit_name_the_knobs(
    tiny_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = write_real_files(tmp_path)
    words = [
        *("train", "--model", str(tiny_model), "--run-dir", str(tmp_path / "run")),
        *("--data", str(files["train.jsonl"]), "--corpus", str(files["corpus.jsonl"])),
    ]
    said = refused(words, capsys)
    assert "--env.prompt none" in said
    assert not (tmp_path / "run").exists()
