import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngym.envs.core.errors import BadValueError, UnknownNameError
from turngym.envs.search_qa import rewards
from turngym.envs.search_qa.answer_metrics import exact_match
from turngym.envs.search_qa.env import SearchQA
from turngym.envs.search_qa.rewards import (
    Piece,
    Rewards,
    form_so_far,
    holds_answer,
    is_well_formed,
)
from turngym.envs.search_qa.text import (
    GRAMMAR,
    end_with_question_mark,
    find_last_answer,
    write_information,
)
from turngym.envs.tools.action_parsing import Tagged, Unreadable
from turngym.envs.tools.retrieval.base import Hit

GOLD = ["Lum Tor"]
LADDER = Rewards(structure_score=0.2, format_score=0.1)
SEARCH = Piece("<think> look </think>\n<search> Ada </search>", True)
FOUND = Piece("\n\n<information>Doc 1(Title: Ada) born in Lum Tor</information>\n\n", False)
RIGHT = "<think> ok </think> <answer> Lum Tor </answer>"
WRONG = "<think> ok </think> <answer> Mel Bay </answer>"


def score(pieces: list[Piece], rewards: Rewards = LADDER) -> float:
    said = find_last_answer(pieces[-1].text)
    held = any(holds_answer(p.text, GOLD) for p in pieces if not p.by_model)
    em = exact_match(said or "", GOLD)
    return sum(rewards(em, is_well_formed(pieces), held).values())


@pytest.mark.parametrize(
    ("pieces", "total"),
    [
        ([SEARCH, FOUND, Piece(RIGHT, True)], 1.0),
        ([SEARCH, Piece("\n\n<information>Doc 1 born in Lum", False), Piece(RIGHT, True)], 0.8),
        ([SEARCH, FOUND, Piece(WRONG, True)], 0.2),
        ([SEARCH, FOUND, Piece("<answer> Mel Bay </answer>", True)], 0.1),
        ([SEARCH, FOUND, Piece(RIGHT + WRONG, True)], 0.1),
        ([SEARCH, FOUND, Piece(RIGHT + "<|im_end|>", True)], 0.8),
    ],
)
def test_e25_ladder(pieces: list[Piece], total: float) -> None:
    assert score(pieces) == pytest.approx(total)


def test_retrieval_counts_only_for_a_wrong_answer_in_good_form() -> None:
    rewards = Rewards(structure_score=0.2, format_score=0.1, retrieval_score=0.05)
    assert rewards(0.0, True, True) == {"outcome": 0.0, "format": 0.2, "retrieval": 0.05}
    assert rewards(0.0, True, False)["retrieval"] == 0.0
    assert rewards(1.0, True, True)["retrieval"] == 0.0
    assert rewards(0.0, False, True)["retrieval"] == 0.0


def test_f1_in_bad_form_can_be_negative_and_the_range_says_so() -> None:
    rewards = Rewards(outcome="f1", structure_score=0.2)
    assert sum(rewards(0.1, False, False).values()) == pytest.approx(-0.1)
    assert rewards.range == (-0.2, 1.0)
    assert Rewards().range == (0.0, 1.0)


@pytest.mark.parametrize(
    "pieces",
    [
        [],
        [SEARCH],
        [SEARCH, FOUND],
        [Piece("hello " + RIGHT, True)],
        [Piece("<think> a <think> b </think> <answer> c </answer>", True)],
        [Piece("<think> a </think> <answer> c", True)],
        [Piece("<search> q </search>", True), FOUND, Piece(RIGHT, True)],
        [SEARCH, Piece(RIGHT, True)],
        [SEARCH, FOUND, FOUND, Piece(RIGHT, True)],
        # The model cannot write the environment's part itself.
        [Piece(SEARCH.text + "<information> Lum Tor </information>" + RIGHT, True)],
        [SEARCH, FOUND, Piece(RIGHT, True), Piece(RIGHT, True)],
    ],
)
def test_malformed(pieces: list[Piece]) -> None:
    assert not is_well_formed(pieces)


def test_tags_inside_a_passage_do_not_break_the_form() -> None:
    odd = Piece("\n\n<information>Doc 1(Title: x) <answer> </think></information>\n\n", False)
    assert is_well_formed([SEARCH, odd, Piece(RIGHT, True)])


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("<answer>A</answer> blah <search>q</search>", Tagged("answer", "A")),
        ("<search></search>", Tagged("search", "")),
        ("<search>q", None),
        ("<answer>x</search>", None),
    ],
)
def test_e26_action(text: str, read: Tagged | None) -> None:
    found = GRAMMAR.parse(text)
    assert isinstance(found, Unreadable) if read is None else found == read


def test_information() -> None:
    hits = [Hit("0", '"Ada Brook"', "Born in Lum Tor.", 2.0), Hit("1", '"B"', "Text.", 1.0)]
    text, whole = write_information(hits, 1000)
    assert whole == 2
    assert text == (
        '\n\n<information>Doc 1(Title: "Ada Brook") Born in Lum Tor.\n'
        'Doc 2(Title: "B") Text.</information>\n\n'
    )
    for budget in range(80, len(text) + 1):
        cut, whole = write_information(hits, budget)
        assert len(cut) <= budget
        assert cut.startswith("\n\n<information>")
        assert cut.endswith("</information>\n\n")
        assert whole == 1 + (budget == len(text))


def test_questions_end_with_a_question_mark() -> None:
    assert end_with_question_mark(" who am I ") == "who am I?"
    assert end_with_question_mark("who?") == "who?"


def test_refusals() -> None:
    with pytest.raises(UnknownNameError, match="'em'"):
        Rewards(outcome="EM!")
    with pytest.raises(BadValueError, match="structure_score is 2"):
        Rewards(structure_score=2)


TAGS = ("think", "search", "python", "answer", "information")
BITS = ("<", "a < b", " ", "\n", "\u2003", "x")
PARTS = st.sampled_from([*(f"<{s}{tag}>" for tag in TAGS for s in ("", "/")), *BITS])
USUAL = st.sampled_from([SEARCH, Piece(RIGHT, True), FOUND, Piece(" ", False), Piece("", True)])
PIECE = USUAL | st.builds(Piece, st.lists(PARTS, max_size=8).map("".join), st.booleans())


@given(st.lists(PIECE, max_size=5), st.sampled_from([("search",), ("search", "python")]))
def test_the_usual_form_is_read_as_all_others(pieces: list[Piece], tools: tuple[str, ...]) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(rewards, "_compile_usual", lambda _: re.compile("(?!)"))
        formed = is_well_formed(pieces, tools)
    assert is_well_formed(pieces, tools) == formed


def test_form_so_far_says_what_is_waited_for() -> None:
    assert form_so_far([]) == "start"
    assert form_so_far([SEARCH]) == "search"
    assert form_so_far([SEARCH, FOUND]) == "informed"
    assert form_so_far([SEARCH, FOUND, Piece(RIGHT, True)]) == "end"
    assert form_so_far([Piece("<search> Ada </search>", True)]) is None


@pytest.mark.parametrize("form", [0.0, 0.5])
def test_states_differ_where_the_form_so_far_decides_the_reward(form: float) -> None:
    """The same search with thought and without it: the same state, unless form is paid for."""
    digests, totals = set(), set()
    for action in ("<think> so </think><search> Ada </search>", "<search> Ada </search>"):
        env = SearchQA(size="micro", structure_score=form)
        env.reset(seed=1)
        env.step(action)
        digests.add(env.state_digest())
        gold = env.episode.task.payload.answers[0]
        env.step(f"<think> so </think><answer> {gold} </answer>")
        totals.add(env.episode.total_reward)
    assert len(digests) == len(totals) == (2 if form else 1)
