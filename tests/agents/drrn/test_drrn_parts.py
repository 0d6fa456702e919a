"""DRRN: reading, values, memory, one update, files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

from turngym.agents.drrn.features import MAX_WORDS, StateActions, TextTable
from turngym.agents.drrn.memory import ReplayMemory, Transition
from turngym.agents.drrn.network import DrrnNetwork
from turngym.agents.drrn.policy import DrrnPolicy, choose, load_drrn, save_drrn
from turngym.agents.drrn.settings import DrrnSettings, DrrnTraining
from turngym.agents.scripted import run_episode
from turngym.algos.training.supervised.drrn import _learn, train_drrn
from turngym.envs.core.errors import BadValueError, DataError, UnknownNameError

SMALL = DrrnSettings(buckets=64, embedding=8, hidden=8)
SMALL_GRU = DrrnSettings(encoder="gru", buckets=32, embedding=8, hidden=12, history=2)


def network(encoder: str = "bag") -> DrrnNetwork:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return DrrnNetwork(DrrnSettings(encoder=encoder, buckets=64, embedding=8, hidden=8))


def test_texts_are_numbered_once_and_read_alike_everywhere() -> None:
    book = TextTable(1000, pairs=False)
    assert [book.number(text) for text in ("open door", "wait", "open door")] == [0, 1, 0]
    assert len(book) == 2
    # Of crc32: the same in every process.
    assert book.words(0).tolist() == [1 + 2758837156 % 999, 1 + 2330285101 % 999]
    assert book.words(book.number("")).tolist() == [0]
    assert len(book.words(book.number("word " * 1000))) == MAX_WORDS


def test_pairs_tell_orders_apart() -> None:
    for pairs in (False, True):
        book = TextTable(10_000, pairs)
        one, two = (sorted(book.words(book.number(t))) for t in ("a to b", "b to a"))
        assert (one == two) is not pairs


@pytest.mark.parametrize("encoder", ["bag", "gru"])
def test_a_batch_gives_the_values_of_each_alone(encoder: str) -> None:
    net = network(encoder)
    book = net.book()
    situations = [
        book.situation("task one", "room", [], ["wait", "open door", "look"]),
        book.situation("task two", "a longer room with things", ["wait"], ["wait"]),
        book.situation("task one", "", ["wait", "look"], ["open door", "wait"]),
    ]
    together = net(book, situations)
    assert [len(values) for values in together] == [3, 1, 2]
    for situation, values in zip(situations, together, strict=True):
        torch.testing.assert_close(net(book, [situation])[0], values)
    assert together[0][0] != together[1][0]


def test_the_best_and_the_softmax() -> None:
    net = network()
    book = net.book()
    situation = book.situation("t", "o", [], ["a", "b", "c"])
    values = net(book, [situation])[0].detach().numpy().astype(float)
    rng = np.random.default_rng(0)
    assert choose(net, book, [situation], 0.0, rng) == [int(values.argmax())]
    drawn = choose(net, book, [situation] * 3000, 0.1, rng)
    shares = np.exp(values / 0.1) / np.exp(values / 0.1).sum()
    np.testing.assert_allclose(np.bincount(drawn, minlength=3) / 3000, shares, atol=0.03)


def transition(reward: float, after: StateActions | None = None) -> Transition:
    return Transition(StateActions((0, 0, 0), np.zeros(1, np.int64)), reward, after)


def test_rewarded_transitions_are_drawn_more_often() -> None:
    memory, rng = ReplayMemory(100, 0.5), np.random.default_rng(0)
    memory.add(transition(1.0))
    for reward in (0.0, -1.0) * 20:
        memory.add(transition(reward))
    rewards = [t.reward for t in memory.draw(10, rng)]
    assert rewards.count(1.0) == 5
    assert len(memory) == 41
    none = ReplayMemory(100, 0.0)
    none.add(transition(1.0))
    assert (len(none.rewarded), len(none.others)) == (0, 1)
    only = ReplayMemory(100, 0.5)
    only.add(transition(2.0))
    assert [t.reward for t in only.draw(3, rng)] == [2.0] * 3


def test_the_oldest_is_forgotten() -> None:
    memory = ReplayMemory(4, 0.5)
    for reward in (0.0, -1.0, -2.0):
        memory.add(transition(reward))
    assert {t.reward for t in memory.draw(50, np.random.default_rng(0))} == {-1.0, -2.0}


@pytest.mark.parametrize("gamma", [0.0, 0.5])
def test_the_loss_is_that_of_the_temporal_difference(gamma: float) -> None:
    net = network()
    book = net.book()
    before = book.situation("t", "o", [], ["a"])
    after = book.situation("t", "p", ["a"], ["a", "b"])
    batch = [Transition(before, 0.25, after), Transition(before, 1.0, None)]
    value = net(book, [before])[0].item()
    best = net(book, [after])[0].max().item()
    errors = [0.25 + gamma * best - value, 1.0 - value]
    expected = sum(0.5 * e * e if abs(e) < 1 else abs(e) - 0.5 for e in errors) / 2
    training = DrrnTraining(gamma=gamma, lr=1e-2)
    optimizer = torch.optim.Adam(net.parameters(), lr=training.lr)
    assert _learn(net, book, batch, optimizer, training) == pytest.approx(expected, abs=1e-6)
    for _ in range(40):
        loss = _learn(net, book, batch[1:], optimizer, training)
    assert loss < 1e-3
    assert net(book, [before])[0].item() == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("encoder", ["bag", "gru"])
def test_saved_and_loaded(tmp_path: Path, encoder: str) -> None:
    net = network(encoder)
    save_drrn(net, tmp_path / "d", {"steps": 1})
    again = load_drrn(tmp_path / "d")
    book = net.book()
    situation = book.situation("t", "o", [], ["a", "b"])
    torch.testing.assert_close(again(book, [situation]), net(book, [situation]))
    env = gym.make("Password-v0")
    played = [run_episode(env, DrrnPolicy(n), seed=0).actions for n in (net, again)]
    assert played[0] == played[1]


@pytest.mark.parametrize("kill_at", [0, 1, 2])
def test_a_kill_between_two_files_leaves_one_network_or_the_other(
    tmp_path: Path, kill_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = network(), DrrnNetwork(SMALL_GRU)
    save_drrn(old, tmp_path, {"steps": 1})
    replace, left = os.replace, [kill_at]

    def killed(source: Path, target: Path) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr("os.replace", killed)
    if kill_at < 2:
        with pytest.raises(KeyboardInterrupt):
            save_drrn(new, tmp_path, {"steps": 2})
    else:
        save_drrn(new, tmp_path, {"steps": 2})
    monkeypatch.undo()
    found, wanted = load_drrn(tmp_path), new if kill_at else old
    assert found.settings == wanted.settings
    weights = wanted.state_dict()
    assert all(torch.equal(w, weights[name]) for name, w in found.state_dict().items())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["drrn.json", "drrn.safetensors"]


def test_weights_that_do_not_say_their_shape_are_read_by_the_settings(tmp_path: Path) -> None:
    net = DrrnNetwork(SMALL_GRU)
    save_drrn(net, tmp_path, {})
    save_file(dict(net.state_dict()), tmp_path / "drrn.safetensors")  # as it was written before
    assert load_drrn(tmp_path).settings == SMALL_GRU


def test_folders_that_hold_none(tmp_path: Path) -> None:
    with pytest.raises(BadValueError, match=r"drrn\.json is missing"):
        load_drrn(tmp_path)
    save_drrn(network(), tmp_path, {})
    (tmp_path / "drrn.safetensors").write_bytes(b"x")
    with pytest.raises(DataError, match="weights"):
        load_drrn(tmp_path)
    (tmp_path / "drrn.json").write_text('{"settings": {"width": 3}}')
    with pytest.raises(DataError, match="width"):
        load_drrn(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(BadValueError, match="cannot write"):
        save_drrn(network(), tmp_path / "file", {})


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It raised an error of safetensors."""

    def full(*_: Any, **__: Any) -> None:
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("turngym.agents.drrn.policy.save_file", full)
    with pytest.raises(DataError, match="the disk is full"):
        save_drrn(network(), tmp_path / "d", {})
    assert not list((tmp_path / "d").iterdir())


def test_bad_settings() -> None:
    with pytest.raises(UnknownNameError, match="gru"):
        DrrnSettings(encoder="grue")
    for settings in ({"buckets": 1}, {"hidden": 0}, {"history": -1}):
        with pytest.raises(BadValueError, match=next(iter(settings))):
            DrrnSettings(**settings)
    for training in (
        *({"steps": 0}, {"envs": 0}, {"gamma": 1.5}, {"lr": 0.0}, {"memory": 100}),
        *({"priority": -0.1}, {"temperature": 0.0}, {"max_norm": float("nan")}, {"seed": -1}),
    ):
        with pytest.raises(BadValueError, match=next(iter(training))):
            DrrnTraining(**training)
    with pytest.raises(BadValueError, match="temperature"):
        DrrnPolicy(network(), -1.0)


def test_an_environment_without_legal_actions_is_refused() -> None:
    env = gym.make("SearchQA-v0", size="micro")
    with pytest.raises(BadValueError, match="lists none"):
        train_drrn(env, SMALL, DrrnTraining(steps=1))
    with pytest.raises(BadValueError, match="lists none"):
        run_episode(env, DrrnPolicy(network()), seed=0)
