"""The kit: good environments pass; each law catches an environment that breaks it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers.broken_worlds import BROKEN, Backtracking, Hashing, Reusing
from helpers.guess_worlds import AskingGuess, Guess, SessionGuess, guess
from packaging.version import Version

from turngym.envs import check_text_env
from turngym.envs.core.env import TextEnv
from turngym.envs.core.episode import Outcome
from turngym.envs.core.errors import BadValueError, UnknownNameError
from turngym.envs.core.registration import EnvironmentSpec, register_environment
from turngym.envs.testing import cost_laws
from turngym.envs.testing.check import LAWS
from turngym.envs.testing.harness import ConformanceError, Lab, LawViolation

register_environment(
    EnvironmentSpec(
        id="TestKit-v0", entry_point="helpers.guess_worlds:Guess", summary="test", hidden=True
    )
)


@pytest.mark.parametrize("world", [Guess, AskingGuess, SessionGuess, "TestKit-v0"])
def test_good_worlds_pass(world: Any) -> None:
    report = check_text_env(world, max_turns=7)
    assert report.passed == tuple(LAWS)
    assert not report.skipped


class Fuelled(Guess):
    """Has a limit of its own beside that of turns: wrong guesses burn fuel, near ones more."""

    def judge(self, episode, number):
        outcome = super().judge(episode, number)
        world = episode.state
        far = [abs(asked - world.secret.number) for asked in world.asked]
        if outcome.status == "running" and sum(2 if off < 40 else 1 for off in far) > 3:
            return Outcome.truncated("The tank is empty.\n", {}, verdict=outcome.verdict)
        return outcome


def test_a_world_with_a_limit_of_its_own_passes() -> None:
    env = Fuelled(max_turns=12)
    env.reset(seed=1, options={"split": "dev", "task": 3})
    steps = [env.step(guess(400 + number)) for number in range(4)]
    assert [step[3] for step in steps] == [False, False, False, True]
    assert steps[-1][4]["status"] == "truncated"
    assert check_text_env(Fuelled, max_turns=12).passed == tuple(LAWS)


def test_a_wrapped_world_passes() -> None:
    wrapped = lambda: gym.wrappers.TimeLimit(Guess(), 100)  # noqa: E731
    assert check_text_env(wrapped).passed == tuple(LAWS)


class Bare(Guess):
    def expert(self, mistakes=0.0, seed=0):
        raise NotImplementedError

    def legal_actions(self):
        return None

    def hidden_answers(self, episode):
        return ()


def test_laws_that_say_nothing_are_reported() -> None:
    assert set(check_text_env(Bare).skipped) == {
        "legal actions are valid",
        "the expert reaches the top",
        "the answer is hidden",
    }


class OwnStream(Guess):
    """Keeps a stream of its own in its state, which nothing that an action brings is drawn from."""

    chance = False

    def begin(self, task, random):
        world, text = super().begin(task, random)
        world.asked, world.stream = [], 0
        return world, text

    def judge(self, episode, number):
        episode.state.asked.append(number)
        if number == episode.state.secret.number:
            return Outcome.solved("Yes.\n", {"outcome": 1.0})
        return Outcome.move("No.\n")

    def redraw(self, key):
        super().redraw(key)
        self.episode.state.stream = key + 1


class HiddenLuck(OwnStream):
    def judge(self, episode, number):
        outcome = super().judge(episode, number)
        episode.state.asked.append(int(episode.random.generator.integers(10)))
        return outcome

    def redraw(self, key):
        TextEnv.redraw(self, key)


def test_luck_is_what_an_action_brings_not_a_stream_in_the_state() -> None:
    law = LAWS["luck is declared"]
    law(Lab(OwnStream, 2))
    with pytest.raises(LawViolation, match="with another random stream another state"):
        law(Lab(HiddenLuck, 2))


class StreamInState(Guess):
    """Draws from a generator in its state, which forks with it, but is not drawn anew."""

    def begin(self, task, random):
        world, text = super().begin(task, random)
        world.luck = np.random.default_rng(random.seed)
        return world, text


class RedrawnStream(StreamInState):
    def redraw(self, key):
        super().redraw(key)
        self.episode.state.luck = np.random.default_rng((self.episode.random.seed, key))


def test_a_generator_in_the_state_is_redrawn() -> None:
    law = LAWS["luck is declared"]
    law(Lab(RedrawnStream, 2))
    with pytest.raises(LawViolation, match="holds a generator, 'luck'"):
        law(Lab(StreamInState, 2))


class RareLuck(Guess):
    """Ends with nearly every first guess; one of twelve legal ones brings what is drawn."""

    chance = False

    def judge(self, episode, number):
        if number - episode.state.secret.low == 3:
            return Outcome.move(f"{self.draw(episode)}\n")
        return Outcome.failed("No.\n", {"outcome": 0.0})

    def draw(self, episode):
        return episode.random.generator.integers(1000)

    def legal_actions(self):
        low = self.episode.state.secret.low
        return [self.grammar.write("guess", str(low + n)) for n in range(12)]


class RareSharedLuck(RareLuck):
    """Draws from a generator that forks share."""

    chance = True

    def begin(self, task, random):
        self.luck = np.random.default_rng(random.seed)
        return super().begin(task, random)

    def draw(self, episode):
        return self.luck.integers(1000)


@pytest.mark.parametrize(
    ("law", "world", "message"),
    [
        ("luck is declared", RareLuck, "with another random stream"),
        ("fork then act equals act", RareSharedLuck, "one fork answers"),
    ],
)
def test_what_few_legal_actions_do_is_seen(law: str, world: type[Guess], message: str) -> None:
    with pytest.raises(LawViolation, match=message):
        LAWS[law](Lab(world, 2))


@pytest.mark.parametrize(("law", "world"), BROKEN, ids=lambda x: getattr(x, "__name__", x))
def test_a_broken_world_is_caught_by_the_law(law: str, world: Callable[[], gym.Env]) -> None:
    if world is Reusing and Version(gym.__version__) < Version("1.4"):
        pytest.skip("gymnasium compares the infos of two steps since 1.4")
    with pytest.raises(ConformanceError) as caught:
        check_text_env(world)
    assert caught.value.law == law, caught.value.detail
    assert str(caught.value).startswith(f"{caught.value.env} breaks the law {law!r}: ")


def test_a_slow_processor_may_take_longer_in_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    law = LAWS["long actions take little time"]
    monkeypatch.setattr(cost_laws, "MAX_STEP_S", 0.0)
    law(Lab(Guess, 2))
    with pytest.raises(LawViolation, match=r"\(blanks\) .* in linear time"):
        law(Lab(Backtracking, 2))
    monkeypatch.setattr(cost_laws, "SLOWEST_S", 0.0)
    with pytest.raises(LawViolation, match="in linear time"):
        law(Lab(Guess, 2))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [("stop", "</guess>", "expected a tuple of texts"), ("instructions", None, "are not in")],
)
def test_instructions_and_stops_are_texts(name: str, value: object, message: str) -> None:
    lab = Lab(Guess, 2)
    setattr(lab.text_env, name, value)
    with pytest.raises(LawViolation, match=message):
        LAWS["texts are in the space"](lab)


def test_an_error_of_an_environment_says_what_would_show_it_again() -> None:
    class Careless(Guess):
        def judge(self, episode, number):
            raise KeyError(number)

    lab = Lab(Careless, 2)
    with pytest.raises(KeyError) as caught:
        lab.play(lab.env, 7, lambda *_: guess(5), {"split": "dev", "task": 3})
    assert caught.value.__notes__ == [
        f"Careless, task dev/3, episode seed 7, turn 1: the action was {guess(5)!r}"
    ]

    class Refusing(Guess):
        def judge(self, episode, number):
            raise BadValueError("own words")

    with pytest.raises(ConformanceError, match=r"own words; Refusing, task .*the action was"):
        check_text_env(Refusing)


def test_an_expert_below_the_top_is_told_of_open_ends() -> None:
    class Halved(Guess):
        def judge(self, episode, number):
            outcome = super().judge(episode, number)
            return outcome._replace(terms={name: 0.5 for name in outcome.terms})

    with pytest.raises(LawViolation, match="open_ended = True"):
        LAWS["the expert reaches the top"](Lab(Halved, 2))


def test_every_law_has_a_world_that_breaks_it() -> None:
    assert {law for law, _ in BROKEN} == set(LAWS) - {"fork through wrappers"}


def test_a_wrapper_that_forks_badly_is_caught_by_its_law(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stuck(gym.wrappers.OrderEnforcing):
        def fork_wrapper(self, inner):
            return self

    monkeypatch.setattr(gym.wrappers, "OrderEnforcing", Stuck)
    with pytest.raises(ConformanceError, match="fork through wrappers"):
        check_text_env(Guess)


@pytest.mark.parametrize("world", [lambda: gym.make("CartPole-v1"), 3])
def test_other_things_are_refused(world: Any) -> None:
    with pytest.raises(BadValueError, match="check_text_env"):
        check_text_env(world)


def test_too_small_a_sample_is_refused() -> None:
    with pytest.raises(BadValueError, match="tasks_checked is 1"):
        check_text_env(Guess, tasks_checked=1)


def test_a_law_can_be_left_out_with_a_reason() -> None:
    law = "null and garbage stay at the floor"
    report = check_text_env("Bandit-v0", tasks_checked=2, exempt={law: "not today"})
    assert report.skipped[law] == "not today"
    assert law not in report.passed
    with pytest.raises(UnknownNameError, match="null and garbage"):
        check_text_env("Bandit-v0", exempt={"null and garbage": "no such law"})


class Hints(Guess):
    """What it lists, as a test sets it."""

    listed: object = None

    def legal_actions(self):
        return self.listed

    def hidden_answers(self, episode):
        return self.listed


@pytest.mark.parametrize("law", ["legal actions are valid", "the answer is hidden"])
@pytest.mark.parametrize("listed", ["xyz", 5, [5]])
def test_lists_of_texts_are_lists_of_texts(
    law: str, listed: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Hints, "listed", listed)
    with pytest.raises(LawViolation, match=r"\(\) returned .*expected a list of texts"):
        LAWS[law](Lab(Hints, 2))


def test_another_process_is_told_by_seed_and_turn() -> None:
    with pytest.raises(LawViolation, match=r"seed 11, at the start: .* order a set"):
        LAWS["the same in another process"](Lab(Hashing, 2))
