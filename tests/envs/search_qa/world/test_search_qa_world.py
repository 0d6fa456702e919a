import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from turngym.envs.search_qa.answer_metrics import normalise_answer
from turngym.envs.search_qa.questions import KINDS, MAX_HOPS, MIN_HOPS, Drawer
from turngym.envs.search_qa.source import generated_questions
from turngym.envs.search_qa.world.graph import NONE
from turngym.envs.search_qa.world.queries import (
    Count,
    Extreme,
    Follow,
    Named,
    Only,
    Probe,
    count_hops,
    list_answers,
    trace_query,
)
from turngym.envs.search_qa.world.world import World, load_world


@pytest.fixture(scope="module")
def full() -> World:
    return load_world("full", 0, 0.2)


@pytest.fixture(scope="module")
def micro() -> World:
    return load_world("micro", 0, 0.0)


def fingerprint(world: World) -> str:
    lines = [*world.corpus.titles, *world.corpus.texts]
    return hashlib.blake2b("\n".join(lines).encode(), digest_size=8).hexdigest()


def test_sizes(full: World, micro: World) -> None:
    assert len(full.corpus.texts) >= 20_000
    assert len(full.schema.relations) >= 30
    assert 8 <= len(micro.schema.relations) <= 12
    vocabulary = {word for name in micro.graph.names for word in name.split()}
    assert len(vocabulary) <= 200
    assert all(len(name.split()) == 2 for name in micro.graph.names)
    assert all(text.count(".") == 1 for text in micro.corpus.texts)


def test_same_bytes_in_another_process(tmp_path: Path, micro: World) -> None:
    code = (
        "from turngym.envs.search_qa.world.world import load_world; import hashlib;"
        "w = load_world('micro', 0, 0.0); lines = [*w.corpus.titles, *w.corpus.texts];"
        "print(hashlib.blake2b('\\n'.join(lines).encode(), digest_size=8).hexdigest())"
    )
    env = os.environ | {"TURNGYM_CACHE": str(tmp_path), "PYTHONHASHSEED": "77"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == fingerprint(micro)


def test_a_stored_world_equals_a_built_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: World
) -> None:
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path))
    built, stored = World("full", 0, 0.2), World("full", 0, 0.2)
    assert fingerprint(built) == fingerprint(stored) == fingerprint(full)
    assert built.graph.lists == stored.graph.lists
    for key, row in built.graph.facts.items():
        np.testing.assert_array_equal(row, stored.graph.facts[key])


def test_the_worlds_of_this_version(full: World, micro: World) -> None:
    """A change here is a change of behaviour: it needs a new version of the id."""
    assert (fingerprint(full), fingerprint(micro)) == ("079b1ef9599d61f7", "62dfd2a7b008c40e")
    source = generated_questions(full.key, KINDS, (1, 2, 3, 4))
    texts = [source.task(s, i).payload.text for s in ("train", "dev", "test") for i in range(50)]
    assert (
        hashlib.blake2b("\n".join(texts).encode(), digest_size=8).hexdigest() == "85c94497247db795"
    )


def test_other_seed_other_world(micro: World) -> None:
    assert fingerprint(load_world("micro", 1, 0.0)) != fingerprint(micro)


def test_facts_stay_in_their_pool(full: World, micro: World) -> None:
    for world in (full, micro):
        for relation in world.schema.relations:
            row = world.graph.facts[relation.key]
            have = np.flatnonzero(row != NONE)
            assert len(have)
            if relation.literal is None:
                pools = world.graph.pools
                np.testing.assert_array_equal(pools[have], pools[row[have]])
                assert not (row[have] == have).any()


def test_every_fact_is_told_in_an_article_of_its_subject(full: World) -> None:
    rng = np.random.default_rng(0)
    for relation in full.schema.relations:
        row, places = full.graph.facts[relation.key], full.places[relation.key]
        np.testing.assert_array_equal(row != NONE, places != NONE)
        for subject in rng.choice(np.flatnonzero(row != NONE), 5):
            query = Follow(relation, Named(int(subject)))
            text = full.corpus.texts[places[subject]]
            assert any(
                a in text for a in list_answers(full, query, trace_query(full, query).value)
            ), (text, query)
            assert full.corpus.titles[places[subject]] == f'"{full.graph.titles[subject]}"'


def test_namesakes_and_aliases(full: World) -> None:
    graph = full.graph
    assert len(set(graph.titles)) == len(graph.titles)
    namesakes = [n for n, t in zip(graph.names, graph.titles, strict=True) if n != t]
    assert len(namesakes) > 100
    aliases = [a for a in graph.aliases if a]
    assert len(set(aliases)) == len(aliases) > 1000
    assert not set(aliases) & set(graph.names)


def test_wordings_vary(full: World) -> None:
    for relation in full.schema.relations:
        assert len(relation.says) >= 2
        assert relation.says[0].startswith("{s} ")


@pytest.mark.parametrize(
    ("kind", "count"), [(k, n) for k in KINDS for n in range(MIN_HOPS[k], MAX_HOPS + 1)]
)
def test_questions(full: World, kind: str, count: int) -> None:
    source = generated_questions(full.key, (kind,), (count,))
    for split in ("train", "dev"):
        for index in range(25):
            question = source.task(split, index).payload
            assert (question.kind, question.hops) == (kind, count)
            assert question.text.endswith("?")
            said = f" {normalise_answer(question.text)} "
            assert question.answers
            assert not any(f" {normalise_answer(a)} " in said for a in question.answers)
            assert 1 <= len(question.plan) <= count


def test_splits_share_no_thing(full: World) -> None:
    """Every thing that a question names belongs to its split's pool."""
    drawer = Drawer(full, KINDS, (1, 2, 3, 4))
    pools = dict(zip(full.graph.titles, full.graph.pools.tolist(), strict=True))
    rng = np.random.default_rng(3)
    for pool in range(3):
        for _ in range(60):
            question = drawer.draw(pool, rng)
            named = [probe.subject for probe in question.plan if probe.subject in pools]
            assert named or question.kind == "intersection"
            assert {pools[title] for title in named} <= {pool}


def test_counting_is_not_guessable(full: World) -> None:
    source = generated_questions(full.key, ("counting",), (1,))
    given = [source.task("train", i).payload.answers[0] for i in range(600)]
    commonest = max(given.count(answer) for answer in set(given))
    assert commonest < 0.2 * len(given)


def test_dev_has_no_question_twice(full: World) -> None:
    source = generated_questions(full.key, KINDS, (1, 2, 3, 4))
    texts = [source.task("dev", i).payload.text for i in range(2000)]
    assert len(set(texts)) == len(texts)


def test_train_has_no_end(full: World) -> None:
    source = generated_questions(full.key, KINDS, (2,))
    texts = [source.task("train", 2**31 - 1 - i).payload.text for i in range(300)]
    assert len(set(texts)) > 285
    assert source.index_of("train", "train/123456789012") == 123456789012
    assert source.index_of("dev", "dev/2000") is None
    assert source.index_of("dev", "dev/007") is None
    assert source.index_of("dev", "train/7") is None


def test_hop_arithmetic(full: World) -> None:
    schema, facts = full.schema, full.graph.facts
    birth, place = schema.by_key["birth_date"], schema.by_key["birth_place"]
    one, two = np.flatnonzero(facts["birth_date"] != NONE)[:2].tolist()
    elder = Extreme(birth, Named(one), Named(two), highest=False)
    assert count_hops(Follow(birth, elder)) == 2
    assert count_hops(Follow(place, elder)) == 3
    assert count_hops(Follow(place, Follow(schema.by_key["mentor"], Named(one)))) == 2
    first = facts["birth_date"][one] < facts["birth_date"][two]
    assert trace_query(full, elder).value == (one if first else two)
    person = int(np.flatnonzero((facts["birth_place"] != NONE) & (facts["mentor"] != NONE))[0])
    objects = [Named(int(facts[key][person])) for key in ("birth_place", "mentor")]
    kind = int(full.graph.kinds[person])
    only = Only(kind, (place, objects[0]), (schema.by_key["mentor"], objects[1]))
    assert trace_query(full, only).value in (person, None)
    assert count_hops(only) == 2


def test_unresolvable_queries_mean_nothing(full: World) -> None:
    spouse = full.schema.by_key["spouse"]
    single = int(np.flatnonzero(full.graph.facts["spouse"] == NONE)[0])
    nobody = Follow(spouse, Named(single))
    assert trace_query(full, nobody).value is None
    value, plan = trace_query(full, Follow(spouse, nobody))
    assert list_answers(full, Follow(spouse, nobody), value) == ()
    assert [probe.subject for probe in plan] == [full.graph.titles[single], ""]
    born = full.schema.by_key["birth_date"]
    same = Extreme(born, Named(single), Named(single), highest=True)
    assert trace_query(full, same).value is None


def test_a_plan_holds_every_search_in_an_order_in_which_each_can_be_made(full: World) -> None:
    schema, facts, titles = full.schema, full.graph.facts, full.graph.titles
    birth, mentor = schema.by_key["birth_date"], schema.by_key["mentor"]

    def probe(thing: int, key: str, keyword: str) -> Probe:
        return Probe(titles[thing], keyword, (str(int(full.places[key][thing])),))

    taught = np.flatnonzero(facts["mentor"] != NONE).tolist()
    pupil = next(x for x in taught if facts["birth_date"][facts["mentor"][x]] != NONE)
    teacher = int(facts["mentor"][pupil])
    other = int(np.flatnonzero(facts["birth_date"] != NONE)[0])
    elder = Extreme(birth, Follow(mentor, Named(pupil)), Named(other), highest=False)
    value, plan = trace_query(full, elder)
    assert plan == [
        probe(pupil, "mentor", mentor.keyword),
        probe(teacher, "birth_date", birth.keyword),
        probe(other, "birth_date", birth.keyword),
    ]
    assert value in (teacher, other, None)
    listing = schema.listings[0]
    head, members = next(iter(full.graph.lists[listing.key].items()))
    value, plan = trace_query(full, Count(listing, Named(head)))
    assert value == head
    assert plan == [probe(head, listing.key, listing.keyword)]
    assert list_answers(full, Count(listing, Named(head)), value) == (str(len(members)),)
