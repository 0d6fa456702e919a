"""A trained network as an agent; the folder that holds it."""

from __future__ import annotations

import json
import os
import tempfile
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file

from ...envs.core.env import TextEnv
from ...envs.core.errors import BadValueError, DataError
from ...envs.utils.disk_errors import disk_errors
from ..scripted import text_env
from .features import StateActions, TextTable
from .network import DrrnNetwork
from .settings import DRRN_FILE, DrrnSettings

WEIGHTS = "drrn.safetensors"
_SHAPE = "settings"


class EpisodeReader:
    """Reads the states of an episode, one after the other.

    Args:
        book: Numbers the texts.
        history: Past actions that a state shows.
    """

    def __init__(self, book: TextTable, history: int) -> None:
        self._book = book
        self._past: deque[str] = deque(maxlen=history)
        self._first = ""
        self._legal: list[str] = []

    def begin(self, first: str) -> None:
        """An episode starts."""
        self._first = first
        self._past.clear()

    def look(self, env: TextEnv[Any, Any], latest: str) -> StateActions:
        """Return the state after an observation, and what can be done.

        Raises:
            BadValueError: The environment cannot list legal actions.
        """
        legal = env.legal_actions()
        if legal is None:
            raise BadValueError(
                f"{env.name}: a DRRN scores legal actions, and this environment lists none "
                "(legal_actions() is None). Choose one that does, as ScienceWorld-v0 or Game24-v0."
            )
        self._legal = legal or [""]
        return self._book.situation(self._first, latest, self._past, self._legal)

    def take(self, place: int) -> str:
        """Return the text of an action of the last look, which is done now."""
        self._past.append(self._legal[place])
        return self._legal[place]


class DrrnPolicy:
    """Takes the legal action of the highest value, or draws one by softmax.

    Args:
        network: A trained network; shared, not changed.
        temperature: Of the softmax; 0 takes the best.
        seed: Of the draws.
    """

    def __init__(self, network: DrrnNetwork, temperature: float = 0.0, seed: int = 0) -> None:
        if temperature < 0:
            raise BadValueError(f"DRRN: temperature is {temperature}; expected 0 or more.")
        self._network, self._temperature = network, temperature
        self._rng = np.random.default_rng(seed)
        self._book = network.book()
        self._reading = EpisodeReader(self._book, network.settings.history)

    def __call__(self, env: gym.Env[str, str], observation: str, info: Mapping[str, Any]) -> str:
        """Return the next action."""
        if info["turn"] == 0:
            self._reading.begin(observation)
        situation = self._reading.look(text_env(env), observation)
        place = choose(self._network, self._book, [situation], self._temperature, self._rng)[0]
        return self._reading.take(place)


@torch.no_grad()
def choose(
    network: DrrnNetwork,
    book: TextTable,
    situations: Sequence[StateActions],
    temperature: float,
    rng: np.random.Generator,
) -> list[int]:
    """Return the place of one action per state: the best, or one drawn by softmax."""
    found = []
    for values in network(book, situations):
        if temperature == 0:
            found.append(int(values.argmax()))
            continue
        shares = torch.softmax(values.double() / temperature, dim=0).numpy()
        found.append(int(rng.choice(len(shares), p=shares / shares.sum())))
    return found


def save_drrn(network: DrrnNetwork, folder: Path, training: Mapping[str, Any]) -> None:
    """Write a network and how it was trained.

    A network that is in the folder is replaced whole, by the file of the weights: that says their
    shape as well, so that a kill between the two files leaves one network or the other.

    Raises:
        BadValueError: The folder cannot be written.
        DataError: The disk is full.
    """
    shape = {_SHAPE: json.dumps(asdict(network.settings))}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".saving-") as scratch:
            draft = Path(scratch)
            DRRN_FILE.write(draft, network.settings, training)
            with disk_errors(folder):  # safetensors raises no OSError
                save_file(dict(network.state_dict()), draft / WEIGHTS, metadata=shape)
            for name in (WEIGHTS, DRRN_FILE.name):
                os.replace(draft / name, folder / name)
    except OSError as fault:
        raise BadValueError(f"{folder}: cannot write the DRRN there ({fault.strerror}).") from fault


def load_drrn(folder: str | Path) -> DrrnNetwork:
    """Return the network of a folder.

    Raises:
        BadValueError: The folder holds none.
        DataError: A broken file, or weights of another shape.
    """
    folder = Path(folder).expanduser()
    settings = DRRN_FILE.read(folder)
    try:
        network = DrrnNetwork(_settings_of_weights(folder / WEIGHTS) or settings)
        network.load_state_dict(load_file(folder / WEIGHTS))
    except (OSError, SafetensorError, RuntimeError, ValueError, TypeError) as fault:
        raise DataError(
            f"{folder / WEIGHTS}: not the weights of this DRRN ({fault}); train it again."
        ) from fault
    return network.eval()


def _settings_of_weights(path: Path) -> DrrnSettings | None:
    """Return the shape that a file of weights says it has; None of one from before it did."""
    with safe_open(str(path), framework="pt") as file:
        shape = (file.metadata() or {}).get(_SHAPE)
    return None if shape is None else DrrnSettings(**json.loads(shape))
