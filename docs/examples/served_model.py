"""Play a suite with a model behind an OpenAI-compatible server, and record it for a leaderboard.

Address, model, suite and a file for the episodes are the arguments; the file becomes an entry:

    python docs/examples/served_model.py http://localhost:8000/v1 NAME standard-retail-v4 it.jsonl
    turngym submit it.jsonl --suite standard-retail-v4 --name NAME --model NAME … --out entry

The model writes its actions as text, as the environment's rules ask, so any environment without
sessions will do (all but PaperCrawler). Choose a suite at full size: the micro suites are for small
models that learned the form of an action beforehand, and their prompts hardly explain it. Any other
agent can stand in for the model: ``play`` takes a function from the messages so far to an action.
"""

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import gymnasium as gym

from turngym.agents.engines.openai_client import Endpoint
from turngym.envs import RecordEpisodes, read_transcripts
from turngym.envs.adapters.conversation import cut_at_stop
from turngym.envs.core.errors import ContextFullError
from turngym.leaderboard.suites.files import load_suite

Messages = list[dict[str, str]]


def ask(server: Endpoint, model: str, seed: int, messages: Messages) -> str:
    """Return the model's reply to a conversation."""
    body = {"model": model, "messages": messages, "max_tokens": 512, "seed": seed}
    return server.ask("chat/completions", body, read_text)


def read_text(reply: dict) -> str:
    """Return the text of a server's reply; nothing where the model wrote nothing."""
    text = reply["choices"][0]["message"]["content"]
    if not isinstance(text, str | None):
        raise TypeError(f"content is a {type(text).__name__}; expected a text")  # asked again
    return text or ""


def play(env: gym.Env, act: Callable[[Messages], str], seed: int, options: dict) -> None:
    """Play one episode."""
    observation, info = env.reset(seed=seed, options=options)
    prompt = f"{env.unwrapped.instructions}{observation}\n\nReply with your next action alone."
    messages = [{"role": "user", "content": prompt}]
    while info["status"] == "running":
        action = cut_at_stop(act(messages), env.unwrapped.stop)
        observation, _, _, _, info = env.step(action)
        messages.append({"role": "assistant", "content": action})
        messages.append({"role": "user", "content": observation})


def main(url: str, model: str, suite_id: str, file: str, workers: int = 8) -> float:
    """Play the episodes of a suite that the file does not hold yet; return the success of them all.

    A server that stays away stops the run, and the same command goes on later; a conversation that
    no longer fits into the model's context ends its episode alone.
    """
    server, suite = Endpoint(url=url), load_suite(suite_id)
    cells = suite.by_key()
    played = {t.seed for t in read_transcripts(file)} if Path(file).exists() else set()
    slots = [slot for slot in suite.slots() if suite.seed_of(slot) not in played]

    def play_slot(slot):
        cell, seed = cells[slot.env], suite.seed_of(slot)
        env = gym.make(cell.env_id, **cell.settings)
        recorded = RecordEpisodes(env, file)  # writes the episode when it ends
        options = {"split": cell.split, "task": slot.task}
        try:
            play(recorded, partial(ask, server, model, seed), seed, options)
        except ContextFullError:
            if not recorded.transcript.steps:  # an episode without an action is not written
                recorded.step("")
            recorded.close()  # writes it as given up, which an entry counts as 0

    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(play_slot, slots):
            pass  # so that an error is raised here
    solved = [t.metrics.get("success", 0.0) for t in read_transcripts(file)]
    print(f"{suite.id}: success {sum(solved) / len(solved):.1%} in {len(solved)} episodes, {file}")
    return sum(solved) / len(solved)


if __name__ == "__main__":
    main(*sys.argv[1:])
