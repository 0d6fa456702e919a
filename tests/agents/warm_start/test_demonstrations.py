"""Whom demonstrations are taken from."""

from itertools import pairwise

import gymnasium as gym
import pytest
from helpers.chat_templates import LLAMA32, TOOL
from helpers.guess_worlds import Guess
from helpers.small_models import CHATML, byte_level

import turngym.envs  # noqa: F401 - registers the worlds
from turngym.agents.models.tokenizer import train_tokenizer
from turngym.agents.rendering.factory import PlainRenderer, make_renderer
from turngym.agents.scripted import closed
from turngym.agents.warm_start.demonstrations import Demonstrator, Exchange, render
from turngym.agents.warm_start.settings import starter_settings
from turngym.envs.core.errors import BadValueError, EnvFault, UnknownNameError
from turngym.envs.core.registration import all_ids, find_environment
from turngym.envs.tools.action_parsing import write_call


@pytest.fixture(scope="module")
def papers():
    return gym.make(
        "PaperCrawler-v0", **find_environment("PaperCrawler-v0").warm_start_settings
    ).unwrapped


def test_a_baseline_shows_what_its_headings_tell(papers):
    settings = starter_settings("PaperCrawler-v0")
    reader = Demonstrator(papers, "train", 0, policy=settings.reader)
    for _ in range(20):
        for talk in reader.dialogues():
            request = papers.episode.task.payload
            for _, action in talk:
                if action.startswith("[Expand]"):
                    heading = action.removeprefix("[Expand]").strip()
                    assert papers.parts.names.names_concept(request, heading)


def test_the_expert_is_another_teacher(papers):
    shown = [Demonstrator(papers, "train", 0, policy=p).texts(30) for p in ("expert", "heuristic")]
    assert shown[0] != shown[1]


def test_an_unknown_teacher_is_refused(papers):
    with pytest.raises(UnknownNameError, match="heuristic"):
        Demonstrator(papers, "train", 0, policy="heuristics")


class Broken(Guess):
    """Raises at one of its calls."""

    place, error = "begin", EnvFault("no tool")

    def begin(self, task, random):
        if self.place == "begin":
            raise self.error
        return super().begin(task, random)

    def play(self, episode, action):
        if self.place == "play":
            raise self.error
        return super().play(episode, action)


def test_what_breaks_while_it_is_shown_says_where():
    with pytest.raises(BadValueError, match=r"Broken: .* at reset\(seed=\d+, .*dev.*: no tool"):
        Demonstrator(Broken(), "dev", 0).dialogues()
    faulty = Broken()
    faulty.place, faulty.error = "play", KeyError("bug")
    with pytest.raises(KeyError, match="bug") as caught:
        Demonstrator(faulty, "dev", 0).dialogues()
    episode = faulty.episode
    assert caught.value.__notes__ == [
        f"Broken, task {episode.task.id}, episode seed {episode.random.seed}, turn 1, while its "
        "expert played"
    ]


@pytest.mark.parametrize("env_id", [i for i in all_ids() if find_environment(i).warm_start])
def test_every_action_ends_as_a_rollout_ends_it(env_id: str) -> None:
    world = gym.make(env_id, size="micro").unwrapped
    lines = Demonstrator(world, "train", 0).texts(20)
    tokenizer = train_tokenizer(lines, vocab_size=600, max_length=8192)
    renderer = PlainRenderer(tokenizer)
    for shown in Demonstrator(world, "train", 1).demonstrations(5, renderer):
        following = [*shown.acted[1:], False]
        ends = [i for i, (a, b) in enumerate(zip(shown.acted, following, strict=True)) if a > b]
        assert ends
        for end in ends:
            text = tokenizer.decode(shown.ids[: end + 1])
            assert shown.ids[end] == renderer.eos_id or text.endswith(tuple(world.stop))


def test_a_call_that_is_a_message_is_taught_with_its_end():
    """No model of Llama's kind learned to end its calls, since the environment's own form does."""
    renderer = make_renderer(byte_level(LLAMA32), tools=[TOOL])
    call = write_call("look", {"thing": "a lamp"})
    shown = render([Exchange("one", call), Exchange("two", call)], "r", ("</tool_call>",), renderer)
    learned = [i for i, acted in zip(shown.ids, shown.acted, strict=True) if acted]
    assert learned.count(renderer.eos_id) == 2
    assert learned[-1] == renderer.eos_id
    assert (renderer.eos_id,) * 2 not in set(pairwise(shown.ids))


def test_a_message_that_an_action_closes_is_not_closed_again():
    tokenizer = byte_level(CHATML)
    talk = [Exchange("go", "<answer>"), Exchange("a lamp", "hello"), Exchange("a door", "bye")]
    shown = render(talk, "Rules. ", ("<answer>",), make_renderer(tokenizer))
    dialogue = [
        {"role": role, "content": text}
        for observation, action in talk
        for role, text in (("user", observation), ("assistant", action))
    ]
    dialogue[0]["content"] = "Rules. go"
    whole = tokenizer.apply_chat_template(dialogue, tokenize=False)
    assert tokenizer.decode(shown.ids) == whole.rstrip("\n")
    acted = [i for i, is_act in zip(shown.ids, shown.acted, strict=True) if is_act]
    assert tokenizer.decode(acted) == "<answer>hello<|im_end|>bye<|im_end|>"


@pytest.mark.parametrize("env_id", ["Game24-v0", "ScienceWorld-v0"])
def test_actions_that_are_lines_end_as_a_model_has_to_end_them(env_id):
    env = gym.make(env_id, size="micro").unwrapped
    talk = Demonstrator(env, "train", 0).dialogues()[0]
    assert env.episode.status == "solved"
    assert all(action.endswith("\n") and action.count("\n") == 1 for _, action in talk)


def test_other_actions_stay_as_they_are():
    assert closed("What is your email?", ("</tool_call>",)) == "What is your email?"
    assert closed("[Stop]", ("\n", "[Stop]")) == "[Stop]"
    assert closed("look around", ("\n",)) == "look around\n"
