"""A page per registered environment, in Gymnasium's form, and the table of them all."""

from __future__ import annotations

import inspect
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import gymnasium as gym

from ...agents.scripted import run_episode, scripted
from ...algos.training.config import EnvConfig
from ...envs.core.env import TextEnv
from ...envs.core.registration import (
    EnvironmentSpec,
    all_ids,
    environment_class,
    find_environment,
)
from ...envs.core.tasks import get_split_size
from ...envs.utils.statistics import estimate_scores
from .docstrings import Docstring, read_docstring, table_cell

TASKS = 20
"""Tasks of the dev split behind the reference scores of a page."""
MAX_CHARS, MAX_TURNS = 900, 8
"""What an example episode shows of an observation, and of its turns."""
SHARED_METRICS = {
    "success": "1 when the status is `solved`, else 0",
    "return": "sum of the rewards",
    "turns": "actions taken",
    "invalid_actions": "actions that were answered by an error message",
}
ENDS = (
    ("`terminated`", "`solved` or `failed`", "the environment's verdict on the task"),
    ("`truncated`", "`truncated`", "the turn limit"),
    ("`truncated`", "`env_error`", "a tool or a grader broke; masked in training, counted apart"),
)


@dataclass(frozen=True)
class Reference:
    """Scores of one scripted agent on the same tasks."""

    agent: str
    success: Sequence[float]
    returns: Sequence[float]
    turns: Sequence[float]


@dataclass(frozen=True)
class Described:
    """An environment with what its page says about it.

    Attributes:
        row: Its row of the registry.
    """

    row: EnvironmentSpec

    @cached_property
    def doc(self) -> Docstring:
        """The docstring of its class; one without says what its row does."""
        known = environment_class(self.row.id)
        found = read_docstring(known)
        if known.__dict__.get("__doc__"):
            return found
        return Docstring(self.row.summary, arguments=found.arguments)

    @cached_property
    def small(self) -> TextEnv[Any, Any]:
        """The environment at its smallest size, which examples and reference scores play."""
        return _make(self.row.id, self.row.smallest)

    @cached_property
    def default(self) -> TextEnv[Any, Any]:
        """The environment as ``gym.make`` gives it without settings."""
        return _make(self.row.id, {})

    @cached_property
    def references(self) -> list[Reference]:
        """Scores of the scripted agents on the first dev tasks at the smallest size."""
        env = self.small
        tasks = range(min(TASKS, get_split_size(env.source, "dev", env.name) or TASKS))
        return [
            Reference(name, *zip(*(_score(env, name, task) for task in tasks), strict=True))
            for name in self.agents
        ]

    @property
    def agents(self) -> list[str]:
        """Return the scripted agents that play it, the best first."""
        names = [*self.small.baselines(), "random", "null"]
        return ["expert", *names] if self.small.find_expert() is not None else names

    @property
    def split(self) -> str:
        """Return the split of examples: dev, or the first one that has tasks."""
        sizes = self.small.source.sizes()
        return "dev" if sizes.get("dev", 0) != 0 else next(s for s, n in sizes.items() if n != 0)


def environment_pages() -> dict[str, str]:
    """Return path and Markdown of a page per registered environment, and of their table."""
    found = [Described(find_environment(name)) for name in all_ids(hidden=True)]
    pages = {page_path(one.row): environment_page(one) for one in found}
    pages["environments/index.md"] = environment_table(found)
    return pages


def page_path(row: EnvironmentSpec) -> str:
    """Return the path of an environment's page."""
    return f"environments/{row.id}.md"


def environment_table(found: Sequence[Described]) -> str:
    """Return the page that lists all environments with their limits."""
    lines = [
        "# Environments",
        "",
        "Text in, text out, the five-tuple of Gymnasium: `gym.make(id)` after "
        "`import turngym.envs`. Limits are those of `gym.make` without settings. "
        "[What holds for all of them](../environments-in-general.md); "
        "[an environment of your own](../adding-an-environment.md).",
    ]
    for title, hidden in (("Tasks", False), ("Diagnostic environments", True)):
        lines += ["", f"## {title}", ""]
        if hidden:
            lines += [
                "Tiny, each with one difficulty as a number. `turngym envs --hidden` lists them.",
                "",
            ]
        lines += ["| id | what it asks for | turns | return |", "|---|---|---|---|"]
        lines += [
            f"| [`{one.row.id}`]({one.row.id}.md) | {table_cell(one.row.summary)} "
            f"| {one.default.max_turns} | {_range(one.default.reward_range)} |"
            for one in found
            if one.row.hidden == hidden
        ]
    return "\n".join(lines) + "\n"


def environment_page(one: Described) -> str:
    """Return the page of an environment."""
    row, doc = one.row, one.doc
    description = "\n\n".join(t for t in (doc.body, doc.section("Description")) if t)
    parts = [
        f"# {row.id}",
        doc.summary,
        _use(row),
        "## Example episode",
        _example(one),
        *(("## Description", description) if description else ()),
        "## Actions",
        _actions(one),
        "## Observations",
        _observations(one),
        "## Rewards",
        _rewards(one),
        "## Start and end of an episode",
        _start_and_end(one),
        "## Arguments",
        _arguments(one),
        "## Metrics",
        _metrics(one),
        "## Speed",
        _speed(one),
        "## Reference scores",
        _references(one),
        *(("## References", doc.section("References")) if doc.section("References") else ()),
        "## Version history",
        doc.section("Version history") or f"- `{row.id}`: the first version.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def environment_guide(one: Described) -> str:
    """Return what somebody who is about to play wants to know, as Markdown."""
    doc = one.doc
    description = "\n\n".join(t for t in (doc.summary, doc.body, doc.section("Description")) if t)
    parts = [
        f"# {one.row.id}",
        description,
        "## Actions",
        _actions(one),
        "## Rewards",
        _rewards(one),
        "## Start and end of an episode",
        _start_and_end(one),
        "## Arguments",
        _arguments(one),
        "## Example episode",
        _example(one),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _make(env_id: str, settings: Mapping[str, Any]) -> TextEnv[Any, Any]:
    env = EnvConfig(id=env_id, settings=settings).make().unwrapped
    assert isinstance(env, TextEnv), "registered environments are text environments"
    return env


def _use(row: EnvironmentSpec) -> str:
    return (
        "```python\nimport gymnasium as gym\nimport turngym.envs\n\n"
        f'env = gym.make("{row.id}")\n'
        'observation, info = env.reset(seed=0, options={"split": "dev"})\n```'
    )


def _example(one: Described) -> str:
    env = one.small
    agent = one.agents[0]
    policy = scripted(agent, 0, env)
    observation, info = env.reset(seed=0, options={"split": one.split, "task": 0})
    lines = [_shorten(env.instructions + observation)]
    over, turn = False, 0
    while not over:
        turn += 1
        action = policy(env, observation, info)
        observation, reward, terminated, truncated, info = env.step(action)
        over = terminated or truncated
        if turn <= MAX_TURNS:
            lines += [f"▶ {_shorten(action.strip())}", _shorten(observation)]
            if reward:
                terms = ", ".join(f"{k} {v:+g}" for k, v in info["reward_terms"].items() if v)
                lines.append(f"  reward {reward:+g} ({terms})")
    if turn > MAX_TURNS:
        lines.append(f"… {turn - MAX_TURNS} more turns")
    lines.append(f"  status {info['status']}, return {env.episode.total_reward:g}")
    size = f" at size `{env_size}`" if (env_size := one.row.smallest.get("size")) else ""
    text = "\n".join(line.rstrip() for line in lines if line.strip()).replace("```", "'''")
    return (
        f"The {_agent(agent)} on the first {one.split} task{size}; `▶` marks its actions.\n\n"
        f"```text\n{text}\n```"
    )


def _agent(name: str) -> str:
    return {"expert": "scripted expert", "random": "random agent"}.get(name, f"baseline `{name}`")


def _shorten(text: str) -> str:
    text = text.strip("\n")
    return text if len(text) <= MAX_CHARS else f"{text[:MAX_CHARS]} … ({len(text)} characters)"


def _actions(one: Described) -> str:
    env, parts = one.default, [one.doc.section("Actions")]
    ends = ", ".join(f"`{_visible(stop)}`" for stop in env.stop)
    parts.append(
        f"Text of up to {env.action_space.max_chars:,} characters."
        + (f" A model's action ends at the first of: {ends}." if ends else "")
    )
    if env.tools:
        parts.append("Tools:")
        parts.append(
            "\n".join(
                ["| tool | |", "|---|---|"]
                + [
                    f"| `{tool.get('name')}` | {table_cell(tool.get('description', ''))} |"
                    for tool in (t.get("function", t) for t in env.tools)
                ]
            )
        )
    one.small.reset(seed=0, options={"split": one.split, "task": 0})
    legal = one.small.legal_actions()
    if legal is None:
        parts.append("Actions cannot be listed: `legal_actions()` is `None`.")
    else:
        few = ", ".join(f"`{_visible(action)}`" for action in legal[:6])
        more = f" and {len(legal) - 6} more" if len(legal) > 6 else ""
        parts.append(
            f"`env.unwrapped.legal_actions()` lists what makes sense now; at first: {few}{more}."
        )
    return "\n\n".join(part for part in parts if part)


def _observations(one: Described) -> str:
    env, parts = one.default, [one.doc.section("Observations")]
    parts.append(f"Text of up to {env.observation_space.max_chars:,} characters.")
    if env.instructions:
        parts.append(
            "The rules are `env.unwrapped.instructions`; together with the first observation they "
            "are the complete prompt."
        )
    if env.sessions:
        parts.append(
            "Actions may ask for sessions: `info` says which session an observation belongs to "
            "and which one asked for it."
        )
    return "\n\n".join(part for part in parts if part)


def _rewards(one: Described) -> str:
    env = one.default
    text = one.doc.section("Rewards")
    notes = [f"Returns lie in {_range(env.reward_range)} with the default settings."]
    if verdicts := one.doc.section("Verdicts"):
        notes.append(f"Verdicts: {verdicts}")
    if env.open_ended:
        notes.append("Tasks have no common highest return, so success is a matter of degree.")
    if env.reward_noise:
        notes.append(f"The term `noise` is random, within ±{env.reward_noise:g}.")
    notes.append('`info["reward_terms"]` names the parts of each reward.')
    return "\n\n".join(part for part in (text, *notes) if part)


def _start_and_end(one: Described) -> str:
    env = one.default
    sizes = env.source.sizes()
    splits = ", ".join(
        f"`{name}` ({'without end' if size is None else f'{size:,} tasks'})"
        for name, size in sizes.items()
    )
    limits = f"{env.max_turns} actions"
    if one.row.smallest and one.small.max_turns != env.max_turns:
        limits += f" ({one.small.max_turns} at size `micro`)"
    rows = "\n".join(f"| {flag} | {status} | {why} |" for flag, status, why in ENDS)
    chance = (
        "What an action brings is drawn from the episode's random stream."
        if env.chance
        else "The same actions on the same task and seed always bring the same."
    )
    return (
        f'`reset(seed=…, options={{"split": …, "task": …}})`. Splits: {splits}. {chance} '
        f"An episode is truncated after {limits}.\n\n"
        f'| flag | `info["status"]` | because of |\n|---|---|---|\n{rows}'
    )


def _arguments(one: Described) -> str:
    known = environment_class(one.row.id)
    lines = ["| argument | default | |", "|---|---|---|"]
    for name, parameter in inspect.signature(known).parameters.items():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        value = one.row.kwargs.get(name, parameter.default)
        shown = "" if value is parameter.empty else f"`{table_cell(repr(value))}`"
        lines.append(f"| `{name}` | {shown} | {table_cell(one.doc.arguments.get(name, ''))} |")
    return "\n".join(lines)


def _metrics(one: Described) -> str:
    env = one.small
    played = run_episode(env, scripted(one.agents[0], 0, env), 0, {"split": "dev"})
    own = [name for name in played.metrics if name not in SHARED_METRICS]
    lines = [f"- `{name}`: {text}" for name, text in SHARED_METRICS.items()]
    text = '`info["metrics"]` at the end of an episode:\n\n' + "\n".join(lines)
    if own:
        text += "\n- its own: " + ", ".join(f"`{name}`" for name in own)
    if stated := one.doc.section("Metrics"):
        text += f"\n\n{stated}"
    return text


def _speed(one: Described) -> str:
    env = one.small
    agent = one.agents[0]
    forks = steps = 0
    spent = forking = 0.0
    for task in range(5):
        policy = scripted(agent, 0, env)
        observation, info = env.reset(seed=task, options={"split": "dev"})
        start, over = time.process_time(), False
        while not over:
            action = policy(env, observation, info)
            begun = time.process_time()
            observation, _, terminated, truncated, info = env.step(action)
            spent += time.process_time() - begun
            steps += 1
            over = terminated or truncated
        start = time.process_time()
        for _ in range(20):
            env.fork()
        forking += time.process_time() - start
        forks += 20
    size = " at size `micro`" if one.row.smallest else ""
    return (
        f"One copy{size} on one core, in processor time, measured when this page was built: a step "
        f"{_duration(spent / steps)}, a fork {_duration(forking / forks)}. Careful measurements "
        "are among the [measured figures](../results/measured.md)."
    )


def _references(one: Described) -> str:
    lines = ["| agent | success | return | turns |", "|---|---|---|---|"]
    for scores in one.references:
        lines.append(
            f"| `{scores.agent}` | {_interval(scores.success, percent=True)} "
            f"| {_interval(scores.returns)} | {sum(scores.turns) / len(scores.turns):.1f} |"
        )
    size = " at size `micro`" if one.row.smallest else ""
    setting = " --size micro" if one.row.smallest else ""
    names = " ".join(scores.agent for scores in one.references)
    count = len(one.references[0].success)
    return (
        f"The first {count} dev tasks{size}, seed 0 each, played when this page was built; "
        "95 % intervals over tasks.\n\n" + "\n".join(lines) + "\n\n"
        f"```sh\nturngym eval --env {one.row.id}{setting} --agent {names} --n {count}\n```\n\n"
        "Small starting models: [measured figures](../results/measured.md), `turngym starters`."
    )


def _score(env: gym.Env[str, str], agent: str, task: int) -> tuple[float, float, float]:
    inner = env.unwrapped
    assert isinstance(inner, TextEnv), "registered environments are text environments"
    played = run_episode(env, scripted(agent, 0, inner), 0, {"split": "dev", "task": task})
    return float(played.status == "solved"), played.episode_return, float(played.turns)


def _interval(values: Sequence[float], *, percent: bool = False) -> str:
    found = estimate_scores([values])
    mean, low, high = found.mean, found.low95, found.high95
    if percent:
        return f"{100 * mean:.0f} % ({100 * low:.0f}–{100 * high:.0f})"
    if low == high:
        return f"{mean:.2f} (all alike)"
    return f"{mean:.2f} ({low:.2f}–{high:.2f})"


def _range(bounds: tuple[float, float]) -> str:
    return " to ".join(f"{b:,.0f}" if b == int(b) else f"{b:,g}" for b in bounds)


def _visible(text: str) -> str:
    return re.sub(r"\s*\n\s*", r"\\n", text)


def _duration(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms"
