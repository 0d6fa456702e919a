"""What an environment has that a family of the ladder asks of, for the advice of the guide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Trait:
    """What an environment has that a family asks of, and how the probe shows it.

    Attributes:
        has: Continues "If your environment has".
        probe: Continues "`turngym probe` shows".
    """

    has: str
    probe: str


TRAITS: Mapping[str, Trait] = {
    "Lottery": Trait(
        "returns that hang on early turns whose worth cannot be learned",
        "a sibling correlation that rises behind the first turns",
    ),
    "Corridor": Trait(
        "a decision whose effect comes many turns later",
        "long episodes and a high sibling correlation after the first turns",
    ),
    "Keys": Trait(
        "states that come again, with ways back and dead ends",
        "a large share of turns in a state seen before in the episode",
    ),
    "Aliases": Trait(
        "different states with equal observations",
        "many turns in states that other trees were in, though their returns differ",
    ),
    "Noise": Trait(
        "noise on the reward",
        "variance of the return within a prompt and a low sibling correlation at every depth",
    ),
    "Fog": Trait(
        "tools whose answers are uncertain",
        "an entropy after answers that is above that at the start",
    ),
    "Judge": Trait(
        "an outcome that is all or nothing and turns that a judge can rate",
        "rare success at the start; whether there are verdicts, you know from the environment",
    ),
    "Spawn": Trait(
        "sessions that ask for further sessions",
        "no sign of it; whether it opens sessions, you know from the environment",
    ),
    "Stale": Trait(
        "rollouts so dear that every batch is used for many updates",
        "nothing of it; updates per batch are a setting of the recipe",
    ),
    "Rare": Trait(
        "success that is rare at the start",
        "success at the start near or below 1 %",
    ),
}
"""By family; of one without an entry the page says what it asks."""
