"""What is drawn at a load: jumps give what one walk through all draws gives."""

from __future__ import annotations

import pytest

from turngym.envs.science_world.house.java_random import JavaRandom
from turngym.envs.science_world.tasks import draws
from turngym.envs.science_world.tasks.catalogue import find_kind
from turngym.envs.science_world.tasks.variations import (
    CUPS,
    UNKNOWN_LETTERS,
    UNKNOWN_MELTING,
)


def _walk(variation: int) -> dict[str, object]:
    """Every draw of a load in the original's order."""
    random = JavaRandom(variation)

    def genes(count: int) -> list[int]:
        return [random.next_int(2) for _ in range(count)]

    found: dict[str, object] = {}
    for task in range(4):
        for name in draws.CUPPED:
            found[f"state {task} {name}"] = random.pick(CUPS)
    for letter in UNKNOWN_LETTERS:
        found[f"conducts {letter}"] = random.next_float() >= 0.5
    for task in range(4):
        for group in range(10):
            found[f"pea {task} {group}"] = genes(8)
            found[f"find {task} {group}"] = random.shuffled(range(1, 10))
    for task in range(2):
        found[f"paint {task}"] = random.shuffled(["glass cup", "bowl", "jug"])
    for group in range(10):
        found[f"stage {group}"] = random.shuffled(range(1, 10))
    genes(4)
    for jar in range(8):
        found[f"pea jar {jar}"] = (genes(6), genes(6))
    for choice in range(5):
        found[f"pea pots {choice}"] = random.shuffled(range(1, 10))[:6]
    for jar in range(32):
        if jar % 8 == 0:
            genes(36)
        first = genes(6)
        genes(8)
        found[f"unknown jar {jar}"] = (first, genes(6))
        genes(8)
    for choice in range(5):
        found[f"unknown pots {choice}"] = random.shuffled(range(1, 10))[:6]
    for row in range(15):
        for draw in range(24):
            distance = random.next_int(100) + 50
            found[f"warm {row} {draw}"] = -distance if random.next_boolean() else distance
    for row in range(5):
        for name in draws.CUPPED_KNOWN:
            found[f"known {row} {name}"] = random.pick(CUPS)
    for row in range(25):
        for letter in UNKNOWN_LETTERS:
            random.next_boolean()
            liquid = UNKNOWN_MELTING[letter] < draws.LIQUID_BELOW
            found[f"cup {row} {letter}"] = random.pick(CUPS) if liquid else None
    return found


def _jumped(v: int) -> dict[str, object]:
    letters, groups = UNKNOWN_LETTERS, range(10)
    found: dict[str, object] = {}
    for task in range(4):
        found |= {f"state {task} {n}": draws.draw_state_cup(v, task, n) for n in draws.CUPPED}
        found |= {f"pea {task} {g}": draws.find_genes(v, task, g) for g in groups}
        found |= {f"find {task} {g}": draws.find_pots(v, task, g) for g in groups}
    conductors = {params.substance[-1]: params for params in find_kind("3-4").variations}
    assert set(conductors) == set(letters)
    found |= {f"conducts {key}": draws.draw_conducts(conductors[key], v) for key in letters}
    found |= {f"paint {task}": draws.draw_paint_containers(v, task) for task in range(2)}
    found |= {f"stage {g}": draws.draw_stage_pots(v, g) for g in groups}
    found |= {f"pea jar {jar}": draws.draw_pea_seeds(v, jar) for jar in range(8)}
    found |= {f"pea pots {c}": draws.draw_pea_pots(v, c) for c in range(5)}
    found |= {f"unknown jar {jar}": draws.draw_unknown_seeds(v, jar) for jar in range(32)}
    found |= {f"unknown pots {c}": draws.draw_unknown_pots(v, c) for c in range(5)}
    for row in range(15):
        for draw in range(24):
            found[f"warm {row} {draw}"] = draws.draw_start_temperature(v, row, draw, 0)
    for row in range(5):
        found |= {f"known {row} {n}": draws.draw_known_cup(v, row, n) for n in draws.CUPPED_KNOWN}
    for row in range(25):
        found |= {f"cup {row} {x}": draws.draw_unknown_cup(v, row, x) for x in letters}
    return found


@pytest.mark.parametrize("variation", [0, 1, 7, 119, 479, 1385])
def test_jumps_give_what_one_walk_gives(variation: int) -> None:
    assert _jumped(variation) == _walk(variation)


def test_no_variation_draws_a_number_twice() -> None:
    """The jumps count one number per draw; in the last draw of all a second one would show."""
    for variation in range(0, 1386, 33):
        last = _walk(variation)["cup 24 X"]
        assert draws.draw_unknown_cup(variation, 24, "X") == last


def test_pots_and_cups_of_the_first_variation() -> None:
    assert draws.draw_stage_pots(0, 0) == _walk(0)["stage 0"]
    assert sorted(draws.find_pots(0, 0, 0)) == list(range(1, 10))
    assert draws.draw_unknown_cup(0, 0, "U") is None
