"""The customer by voice, and the two-agent view."""

from __future__ import annotations

import copy
import io
import pickle
import re
import shutil
import wave
from collections.abc import Callable
from typing import Any

import pytest

from turngym.envs.core.errors import BadValueError, EnvFault, EpisodeError, UnknownNameError
from turngym.envs.retail.customer.channels import (
    Espeak,
    Speech,
    Spoken,
    Waveform,
    read_wave,
    spell_out,
)
from turngym.envs.retail.env import Retail


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("#W1234567", "hash W one, two, three, four, five, six, seven"),
        ("ada.lee42@example.com", "ada dot lee, four, two at example dot com"),
        ("gift_card_70", "gift underscore card underscore, seven, zero"),
    ],
)
def test_ids_are_spelled(code: str, said: str) -> None:
    assert spell_out(code) == said


def test_spoken_words_are_the_same_for_the_same_turn_and_carry_no_signs() -> None:
    text = "My email is ada.lee42@example.com. It is order #W1234567, for $12.50, please."
    channel = Spoken(slips=0.8, noise=0.3)
    heard = channel.deliver(text, 5, 2)
    assert heard == channel.deliver(text, 5, 2)
    assert heard != channel.deliver(text, 6, 2)
    assert "@" not in heard
    assert "1234567" not in heard
    assert Spoken(slips=0).deliver("Yes, please.", 1, 1) == "Yes, please."
    with pytest.raises(BadValueError, match="shares"):
        Spoken(noise=2)


def test_a_visit_by_voice_can_be_solved() -> None:
    env = Retail(channel="spoken")
    observation, info = env.reset(seed=0, options={"split": "dev", "task": 0})
    expert = env.expert()
    while info["status"] == "running":
        observation, *_, info = env.step(expert(env, observation, info))
    assert info["status"] == "solved"


class Beep:
    """A synthesiser that hums for as long as the text is."""

    def speak(self, text: str) -> Waveform:
        if "break" in text:
            raise EnvFault("the synthesiser broke")
        return Waveform(text.encode().ljust(len(text) * 20, b"\0"), 8000)


def test_only_the_sound_reaches_the_assistant() -> None:
    env = Retail(size="micro", channel=Speech(Beep(), Spoken(slips=0)))
    observation, _ = env.reset(seed=0, options={"task": 0})
    assert observation.startswith("Customer: <speech ")
    words = env.episode.state.words
    assert words not in observation
    sound = env.sound()
    assert sound.rate == 8000
    assert sound.samples.startswith(Spoken(slips=0).deliver(words, 0, 0)[:4].encode())
    twin = pickle.loads(pickle.dumps(env))
    assert twin.sound() == sound
    assert twin.step("What is your email?") == env.step("What is your email?")
    with pytest.raises(BadValueError, match="no sound"):
        Retail(size="micro").sound()


def test_a_broken_synthesiser_breaks_the_episode() -> None:
    class Broken(Beep):
        def speak(self, text: str) -> Waveform:
            return super().speak("break" if "mail" in text else text)

    env = Retail(size="micro", channel=Speech(Broken()))
    tasks = [env.source.task("train", i) for i in range(20)]
    quiet = next(t for t in tasks if not t.payload.scenario.identity.volunteers)
    env.reset(seed=0, options={"task": quiet.id})
    assert env.step("What is your email?")[4]["status"] == "env_error"


def wav(channels: int = 1) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(channels)
        out.setsampwidth(2)
        out.setframerate(16000)
        out.writeframes(b"\1\2" * 32)
    return file.getvalue()


def test_waves_are_read() -> None:
    assert read_wave(wav()) == Waveform(b"\1\2" * 32, 16000)
    assert read_wave(wav()).seconds == pytest.approx(0.002)
    for bad in (b"", b"RIFF", wav(2)):
        with pytest.raises(EnvFault, match="synthesiser"):
            read_wave(bad)


def test_a_missing_program_is_refused_with_what_to_do() -> None:
    with pytest.raises(BadValueError, match="apt install espeak-ng"):
        Espeak(program="no-such-program")
    if shutil.which("espeak-ng") is None:
        with pytest.raises(BadValueError, match="needs the program"):
            Retail(size="micro", channel="speech")


@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not installed")
def test_the_customer_is_heard_through_espeak() -> None:
    env = Retail(size="micro", channel="speech")
    observation, _ = env.reset(seed=1)
    assert re.fullmatch(r"Customer: <speech [0-9a-f]{12} \d+\.\d s>\n", observation)
    sound = env.sound()
    assert sound.rate == 22050
    assert sound.seconds > 2
    assert len(set(sound.samples)) > 50
    assert f"{sound.seconds:.1f} s" in observation


def test_the_program_is_run(tmp_path: Any) -> None:
    (tmp_path / "sound.wav").write_bytes(wav())
    program = tmp_path / "say"
    program.write_text(f"#!/bin/sh\ncat > {tmp_path}/text; cat {tmp_path}/sound.wav\n")
    program.chmod(0o755)
    assert Espeak(program=str(program)).speak("hello").rate == 16000
    assert (tmp_path / "text").read_text() == "hello"
    program.write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(EnvFault, match="could not speak"):
        Espeak(program=str(program)).speak("hello")


def test_two_agents() -> None:
    pytest.importorskip("pettingzoo")
    from pettingzoo.test import api_test

    from turngym.envs.retail.aec import ASSISTANT, CUSTOMER, RetailAEC

    with pytest.warns(UserWarning, match="NumPy array"):
        api_test(RetailAEC(size="micro"), num_cycles=60)
    env = RetailAEC(size="micro")
    single = Retail(size="micro")
    task = next(
        i for i in range(60) if single.source.task("dev", i).payload.features["writes"] == 1
    )
    env.reset(seed=3, options={"split": "dev", "task": task})
    payload = env.inner.episode.task.payload
    assert env.agent_selection == CUSTOMER
    assert env.observe(CUSTOMER) == f"{payload.brief}\n"
    (name, given), email = payload.accepted[0][0], payload.scenario.identity.email
    write = env.inner.knowledge.tools.write
    script = [
        (CUSTOMER, "Hi, help me."),
        (ASSISTANT, write("find_user_id_by_email", {"email": email})),
        (ASSISTANT, "Shall I do it?"),
        (CUSTOMER, "Yes."),
        (ASSISTANT, write(name, given)),
        (ASSISTANT, "Done."),
        (CUSTOMER, "###STOP###"),
    ]
    for agent, action in script:
        assert env.agent_selection == agent
        assert payload.brief not in env.observe(ASSISTANT)
        env.step(action)
    assert env.terminations == {ASSISTANT: True, CUSTOMER: True}
    assert env.rewards == {ASSISTANT: 1.0, CUSTOMER: 1.0}


@pytest.mark.parametrize(
    "copied",
    [lambda env: env.fork(), copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))],
    ids=["fork", "deepcopy", "pickle"],
)
def test_a_copy_for_two_agents_has_a_customer_of_its_own(copied: Callable[[Any], Any]) -> None:
    pytest.importorskip("pettingzoo")
    from turngym.envs.retail.aec import ASSISTANT, CUSTOMER, RetailAEC

    env = RetailAEC(size="micro")
    env.reset(seed=1, options={"split": "dev", "task": 0})
    env.step("My first words.")
    twin = copied(env)
    assert twin.inner.digest() == env.inner.digest()
    env.step("What is your email?")
    assert twin.agent_selection == ASSISTANT
    twin.step("Which order?")
    twin.step("Words to the copy.")
    assert twin.observe(ASSISTANT) == "Customer: Words to the copy.\n"
    assert env.agent_selection == CUSTOMER
    env.step("Words to the first one.")
    assert env.observe(ASSISTANT) == "Customer: Words to the first one.\n"
    env.reset(seed=2)
    assert twin.agents == [ASSISTANT, CUSTOMER]
    assert twin.observe(ASSISTANT) == "Customer: Words to the copy.\n"


def test_two_agents_refuse_what_they_cannot_read() -> None:
    """A misspelt option was dropped, so that the episode was of another split."""
    pytest.importorskip("pettingzoo")
    from turngym.envs.retail.aec import RetailAEC

    env, other = RetailAEC(size="micro"), RetailAEC(size="micro")
    for one in (env, other):
        one.reset(seed=1, options={"split": "dev", "task": 0})
    for given, reason in (
        ({"options": {"spilt": "dev"}}, "Did you mean 'split'"),
        ({"options": {"task": -1}}, "not in split"),
        ({"seed": "1"}, "expected an integer from 0"),
        ({"seed": -1}, "expected an integer from 0"),
    ):
        with pytest.raises(ValueError, match=reason):
            env.reset(**given)
    with pytest.raises(TypeError, match="customer: action is a NoneType; expected text"):
        env.step(None)
    for one in (env, other):
        one.step("Hello.")  # begins the episode before those that were refused, none of these
    assert env.inner.digest() == other.inner.digest()
    with pytest.raises(UnknownNameError, match="unknown agent 'custmer'"):
        env.observe("custmer")
    with pytest.raises(BadValueError, match="leave customer out"):
        RetailAEC(customer="scripted")
    fresh = RetailAEC(size="micro")
    for early in (fresh.last, lambda: fresh.observe("customer")):
        with pytest.raises(EpisodeError, match="call reset first"):
            early()


@pytest.mark.parametrize("message", ["\ud800", "x" * 200_000], ids=["surrogate", "long"])
def test_a_message_that_cannot_be_read_is_the_assistant_s_mistake(message: str) -> None:
    pytest.importorskip("pettingzoo")
    from turngym.envs.retail.aec import ASSISTANT, CUSTOMER, RetailAEC

    env = RetailAEC(size="micro")
    env.reset(seed=1, options={"split": "dev", "task": 0})
    env.step("My first words.")
    heard = env.observe(CUSTOMER)
    env.step(message)
    assert "could not be read" in env.observe(ASSISTANT)
    assert env.agent_selection == ASSISTANT
    assert env.observe(CUSTOMER) == heard
    env.step("What is your email?")
    env.step("It is mine.")
    assert env.observe(ASSISTANT) == "Customer: It is mine.\n"


@pytest.mark.parametrize("words", ["\ud800", "x" * 100_000], ids=["surrogate", "long"])
def test_words_that_cannot_be_read_are_none(words: str) -> None:
    """They stood in the assistant's observation, outside its space."""
    pytest.importorskip("pettingzoo")
    from turngym.envs.retail.aec import ASSISTANT, CUSTOMER, RetailAEC

    env = RetailAEC(size="micro")
    env.reset(seed=1, options={"split": "dev", "task": 0})
    longest = env.action_space(CUSTOMER).max_chars
    assert not env.action_space(CUSTOMER).contains(words)
    env.step(words)
    assert env.observe(ASSISTANT) == "Customer: ...\n"
    env.step("What is your email?")
    env.step("x" * longest)
    assert env.observation_space(ASSISTANT).contains(str(env.observe(ASSISTANT)))
