"""Search-o1: searches inside the reasoning, reads documents apart from it (arXiv 2501.05366)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from . import tags
from .episode import Dialect, PromptedEpisode, each_passage, passages
from .examples import ANTHEM, DUN, FORM, VINT, shown
from .parsing import boxed, short_answer, spoken, tagged_answer
from .text_model import Message

ASK, ASKED = "<|begin_search_query|>", "<|end_search_query|>"
RESULT, END = "<|begin_search_result|>", "<|end_search_result|>"
NOTHING = "No helpful information found."
_QUERY = re.compile(rf"{re.escape(ASK)}(.*?)(?:{re.escape(ASKED)}|<\||$)", re.DOTALL)
_FINAL = re.compile(r"\*{0,2}final information\*{0,2}\s*:?\*{0,2}", re.IGNORECASE)
_TITLE = re.compile(r"\(Title: (.*?)\) ", re.DOTALL)
PATIENCE = 2
"""Searches that are refused (repeated, or none left) before the model must answer."""
_THINK = re.compile(r"</?think>")
INTRO = (
    "You answer a question by reasoning, and can search while you reason. To search, write "
    f"{ASK}your query{ASKED} and stop; what was found is then given to you between {RESULT} and "
    f"{END}. You may search up to {{limit}} times. Search whenever you are not sure of a fact. "
    f"{FORM} When you are done, write it as \\boxed{{answer}}."
)
GO_ON = "Go on with your reasoning."
SPENT = "No search is left. Answer now, as \\boxed{your answer}."
REPEATED = f"You have searched for this before; look at what was found then. {GO_ON}"
READ = (
    "Someone reasons about a question and has just searched. Read the passages and pick out what "
    "helps the reasoning on from here: facts only, in one to three sentences, without answering "
    "beyond them. Write it after the words 'Final information:'. If nothing helps, write 'Final "
    f"information: {NOTHING}'"
)
LAST = "Answer now, as \\boxed{your answer}."


def _document_task(question: str, before: str, query: str, found: str) -> str:
    return (
        f"Question: {question}\n\nReasoning so far:\n{before}\n\nQuery: {query}\n\n"
        f"Passages:\n{found or 'none'}"
    )


_ASKS = (
    f"The town comes first: where was Orla Vint born?\n{ASK}Orla Vint painter birthplace{ASKED}",
    f"So the town is Marrowick. Who composed its anthem?\n{ASK}Marrowick anthem composer{ASKED}",
)
_FACTS = (
    "Orla Vint came from the harbour town of Marrowick.",
    "Marrowick's anthem was composed by Teo Brandt.",
)
EXAMPLE = (
    (f"Question: {ANTHEM}", _ASKS[0]),
    (f"{RESULT}{_FACTS[0]}{END}\n{GO_ON}", _ASKS[1]),
    (f"{RESULT}{_FACTS[1]}{END}\n{GO_ON}", "That settles it: \\boxed{Teo Brandt}"),
)
DOCUMENTS = (
    (
        _document_task(ANTHEM, _ASKS[0], "Orla Vint painter birthplace", f"{VINT}\n{DUN}"),
        f"Final information: {_FACTS[0]}",
    ),
    (
        _document_task(ANTHEM, _ASKS[0], "Orla Vint painter birthplace", DUN),
        f"Final information: {NOTHING}",
    ),
)


@dataclass(frozen=True, kw_only=True)
class SearchO1:
    r"""Searches inside its reasoning; a second call condenses what was found for the present step.

    The model writes ``<|begin_search_query|>…<|end_search_query|>`` while it reasons. The passages
    do not enter the reasoning: reason-in-documents, a call of its own, reads them together with the
    reasoning so far and the query, and its "Final information" is inserted as
    ``<|begin_search_result|>…<|end_search_result|>``. The answer stands in ``\boxed{}``.

    Paper: Li et al., arXiv 2501.05366.

    Differs from the paper: passages of the environment's search engine stand for fetched web pages,
    one example of our own, the environment's turn limit for the limit of searches; for chat models
    results are a message of their own instead of going on inside the assistant's. In the dialect
    ``"tags"`` a small model searches with ``<search>``, and reason-in-documents lets it name what a
    result says (a forced ``<answer>``): only the passages of the titles that say so go into its
    context.

    Attributes:
        dialect: See :class:`~turngym.agents.prompting.episode.Agent`.
    """

    dialect: Dialect = "chat"

    async def __call__(self, episode: PromptedEpisode) -> None:
        """Reason and search until the answer."""
        if self.dialect == "tags":
            await self._tags(episode)
            return
        intro = INTRO.replace("{limit}", str(episode.searches_left))
        talk = shown(intro, EXAMPLE, f"Question: {episode.question}")
        given = len(talk)
        asked: set[str] = set()
        refused = 0
        while True:
            reply = await self._reason(episode, talk)
            query = None if _answers(reply) else query_in(reply)
            if query is None or refused == PATIENCE:
                break
            if query in asked or not episode.searches_left:
                refused += 1
                result = REPEATED if episode.searches_left else SPENT
            else:
                asked.add(query)
                found = await episode.search(query)
                before = "\n".join([*(m.content for m in talk[given:]), reply])
                result = f"{RESULT}{await self._condense(episode, before, query, found)}{END}"
                result += f"\n{GO_ON if episode.searches_left else SPENT}"
            talk += [Message("assistant", reply), Message("user", result)]
        if not _answers(reply):
            talk += [Message("assistant", reply or "..."), Message("user", LAST)]
            reply = await self._reason(episode, talk) or reply
        found = boxed(reply)
        await episode.answer(short_answer(_QUERY.sub("", reply)) if found is None else found)

    async def _reason(self, episode: PromptedEpisode, talk: list[Message]) -> str:
        return _THINK.sub("", await episode.ask(talk, (ASKED,))).strip()

    async def _condense(self, episode: PromptedEpisode, before: str, query: str, found: str) -> str:
        """Reason-in-documents: what in the passages helps the present step."""
        task = _document_task(episode.question, before, query, found)
        reply = spoken(await episode.ask(shown(READ, DOCUMENTS, task)))
        kept = _FINAL.split(reply)[-1].strip()
        return " ".join(kept.replace("<|", "").split()) or NOTHING

    async def _tags(self, episode: PromptedEpisode) -> None:
        text = episode.text
        while episode.searches_left:
            action = await tags.free(episode, text)
            if tags.answers(action):
                await episode.act(action)
                if episode.over:
                    return
                continue  # a longer action than the environment reads answers nothing
            if tags.query_of(action) is None:
                action = await tags.forced(episode, "search", text)
            observation = await episode.act(action)
            fact = await tags.forced(episode, "answer", text + action + observation)
            text += action + condensed(observation, tagged_answer(fact) or "")
        await tags.finish(episode, text)


def query_in(text: str) -> str | None:
    """Return the last search query of a piece of reasoning, its end mark missing or not."""
    queries = [" ".join(q.split()) for q in _QUERY.findall(text)]
    return queries[-1] if queries and queries[-1] else None


def condensed(observation: str, fact: str) -> str:
    """Return an observation with only the passages about what ``fact`` is said of; else the whole.

    These are the passages that hold it, and those of the same title.
    """
    body = passages(observation)
    found = each_passage(body)
    titles = {_title(passage) for passage in found if fact and fact in passage}
    kept = [passage for passage in found if _title(passage) in titles]
    renumbered = "\n".join(f"Doc {i}{passage}" for i, passage in enumerate(kept, start=1))
    return observation.replace(body, renumbered) if kept else observation


def _title(passage: str) -> str:
    found = _TITLE.match(passage)
    return found[1] if found else passage


def _answers(text: str) -> bool:
    """Return whether an answer ends the reasoning: one before a search is a thought about it."""
    end = text.rpartition(ASK)[2]
    return boxed(end) is not None or tagged_answer(end) is not None
