"""A small made-up run directory for the viewer: forks, sessions, hostile texts, a broken path."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from turngym.algos.core.forest import Edge, Forest, Group, Tree, Turn
from turngym.algos.core.forest_io import save_forest
from turngym.algos.core.protocols import Credits
from turngym.algos.training.rollout_dump import SUFFIX, first_groups, write_dump

HOSTILE = (
    "</script><script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 1'>",
    "<!-- <script> \u2028 \u202e & ]]>",
)


class Letters:
    """A tokenizer with one token per character."""

    all_special_ids = ()

    def encode(self, text: str, add_special_tokens: bool = False) -> list[int]:
        return [ord(c) for c in text]

    def decode(self, ids: list[int], **_: Any) -> str:
        return "".join(chr(i % 0xD800) for i in ids)  # no half characters


class Scores:
    """A scorer whose log-probabilities are all -0.5."""

    def logprobs(self, forest: Forest) -> list[Any]:
        return [np.full(forest.n_act(path), -0.5, np.float32) for path in forest]


def turn(parent: int, seen: str, wrote: str, reward: float = 0.0, **more: Any) -> Turn:
    ids = np.array([ord(c) for c in wrote], np.int64)
    rewards = np.zeros(len(ids), np.float32)
    rewards[-1] = reward
    given: dict[str, Any] = {
        "status": "running",
        "reward_terms": (("outcome", reward),) if reward else (),
    }
    return Turn(
        parent=parent,
        obs_ids=np.array([ord(c) for c in seen], np.int64),
        act_ids=ids,
        logprobs=-np.linspace(0.01, 2.0, len(ids), dtype=np.float32),
        entropies=np.linspace(0.0, 1.5, len(ids), dtype=np.float32),
        rewards=rewards,
        action=wrote,
        **{**given, **more},
    )


def tree(*turns: Turn) -> Tree:
    made = Tree()
    for one in turns:
        made.add(one)
    return made


ANSWER = "<answer> b </answer>"


def forked(question: str, answer: str = ANSWER) -> Group:
    """A tree that forks after its first turn, and one path that broke."""
    search = turn(-1, f"Question: {question}\n", "<search> a </search>", verdict=1)
    trees = [
        tree(
            search,
            turn(0, "<information>b</information>", answer, 1.0, status="solved"),
            turn(0, "<information>b</information>", "<answer> c </answer>", status="failed"),
        ),
        tree(turn(-1, f"Question: {question}\n", "well", valid=False, status="truncated")),
        tree(turn(-1, f"Question: {question}\n", "<search> x </search>", status="env_error")),
    ]
    return Group("1/0", f"task of {question}", trees)


def paper(name: str, score: float, answer: bool = False) -> dict[str, Any]:
    return {
        "id": name,
        "title": f"The {name} paper",
        "score": score,
        "selected": score > 0.5,
        "answer": answer,
        "depth": 0,
    }


def deeds(session: int, name: str, kind: str, arg: str, found: list[Any]) -> dict[str, Any]:
    deed = {"kind": kind, "arg": arg, "error": "", "cost": 0.1, "results": len(found)}
    crawl = {"request": "papers about trees", "answers": 2, "session": session, "paper": name}
    return {
        "crawl": {
            **crawl,
            "title": f"The {name} paper" if name else "",
            "actions": [{**deed, "relevant": sum(p["answer"] for p in found), "found": found}],
            "queue": 3,
            "waiting": 1,
            "ended": "",
        }
    }


def crawled() -> Group:
    """A crawl: a search, and the session of one paper that it found."""
    first = deeds(0, "", "search", "trees", [paper("oak", 0.9, answer=True), paper("elm", 0.2)])
    second = deeds(1, "oak", "expand", "2 roots", [paper("ash", 0.7, answer=True)])
    grown = tree(
        turn(-1, "request: trees", "[Search] trees\n", 1.4, debug_info=first),
        turn(
            0,
            "paper: oak",
            "[Expand] 2 roots\n",
            0.9,
            debug_info=second,
            edge=Edge.SPAWN,
            status="solved",
        ),
    )
    return Group("1/1", "crawl", [grown])


def credits_of(forest: Forest) -> Credits:
    """Advantages that rise along each path, from below to above 0 over the paths."""
    rows = [
        np.linspace(-0.5, 0.5, forest.n_act(path), dtype=np.float32) + np.float32(i - 1)
        for i, path in enumerate(forest)
    ]
    return Credits(advantages=rows)


def write_run(
    root: Path, steps: tuple[int, ...] = (1, 10), groups: int = 3, answer: str = ANSWER
) -> Path:
    """A run directory as `turngym train` leaves it."""
    folder = root / "trajectories"
    folder.mkdir(parents=True)
    config = {
        "recipe": {"name": "treegrpo", "rollout": {"type": "Expand"}},
        "env": {"id": "SearchQA-v0"},
        "seed": 3,
    }
    (root / "config.json").write_text(json.dumps(config))
    lines = [
        {"step": s, "rollout/return_mean": s / 20, "rollout/success_frac": s / 30}
        for s in range(1, 11)
    ]
    (root / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    made = [forked("who?", answer), crawled(), forked(" ".join(HOSTILE))][:groups]
    for step in steps:
        forest = Forest.of(made)
        save_forest(folder / f"step-{step:06d}-train.jsonl", forest)
        write_step(folder / f"step-{step:06d}-train{SUFFIX}", forest, step)
    return root


def write_step(path: Path, forest: Forest, step: int) -> Path:
    """One file of rollouts."""
    from dataclasses import replace

    kept = first_groups(forest, {}, credits_of(forest), len(forest.groups))
    about = {"recipe": "treegrpo", "env": "SearchQA-v0", "sampled": True}
    write_dump(path, replace(kept, step=step, about=about), Scores(), Letters())  # type: ignore[arg-type]
    return path


def write_evaluations(root: Path) -> None:
    """Two evaluations of two tasks: the first is solved at both, the second after training."""

    def block(task: str, status: str, total: int, decoding: str, wrote: str) -> str:
        rule = "=" * 78
        return (
            f"{rule}\n{task}: {status}, return {total}, {decoding}\n{rule}\n"
            f"[turn 0: 9 tokens seen, 6 written, ended by stop; running]\nWhere?\n\n>>> look\n"
            f"[turn 1: 5 tokens seen, 5 written, ended by stop; {status}]\nThere.\n>>> {wrote}\nnow"
        )

    how = "sampled at temperature 1"
    before = [block("dev/0", "solved", 1, how, "a"), block("dev/1", "failed", 0, "greedy", "b")]
    after = [
        block("dev/0", "solved", 1, how, "c"),
        block("dev/1", "solved", 1, how, "not seen before"),
        block("dev/1", "solved", 1, "greedy", HOSTILE[0]),
    ]
    for step, blocks in ((0, before), (4, ["damaged"]), (10, after)):
        file = root / "trajectories" / f"step-{step:06d}-dev.txt"
        file.write_text("\n".join(blocks) + "\n", encoding="utf-8")
