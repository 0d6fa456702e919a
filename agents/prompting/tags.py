"""The dialect of small and base models: they continue the environment's own dialogue.

Such a model knows ``Question: …``, ``<search>``, ``<information>`` and ``<answer>`` and follows no
instructions. What an agent wants of it is put before it as the beginning of its action.
"""

from __future__ import annotations

from ...envs.search_qa.text import GRAMMAR, STOP
from ...envs.tools.action_parsing import Tagged
from .episode import LONGEST_ANSWER, TAG, PromptedEpisode

THOUGHT_STOPS = ("</think>", "<search>", "<answer>", "<information>")


async def forced(
    episode: PromptedEpisode, tag: str, text: str | None = None, before: str = ""
) -> str:
    """An action of the kind ``tag``: its opening tag is given, the model writes what follows.

    Args:
        episode: The episode.
        tag: ``"search"`` or ``"answer"``.
        text: Dialogue to continue; None for the environment's own.
        before: What stands in the action before the tag.

    Returns:
        The whole action, with its opening and its closing tag.
    """
    start = f"{before}<{tag}>"
    reply = await episode.ask((episode.text if text is None else text) + start, STOP)
    return f"{start}{_untagged(reply)}</{tag}>"


async def free(episode: PromptedEpisode, text: str | None = None) -> str:
    """Return an action as the model writes it, up to the end of its search or answer."""
    return await episode.ask(episode.text if text is None else text, STOP)


async def thought(episode: PromptedEpisode) -> str:
    """Return a thought in its tags, without any other tag in it."""
    reply = await episode.ask(episode.text + "<think>", THOUGHT_STOPS)
    return f"<think>{_untagged(reply)}</think>"


async def finish(episode: PromptedEpisode, text: str | None = None) -> None:
    """Answer now."""
    await episode.act(await forced(episode, "answer", text))


def query_of(action: str) -> str | None:
    """Return the query of an action that searches; None for any other."""
    read = GRAMMAR.parse(action)
    return read.content if isinstance(read, Tagged) and read.tag == "search" else None


def answers(action: str) -> bool:
    """Return whether an action answers."""
    read = GRAMMAR.parse(action)
    return isinstance(read, Tagged) and read.tag == "answer"


def _untagged(reply: str) -> str:
    """Return what a reply says before its first tag, cut at :data:`LONGEST_ANSWER`."""
    return TAG.split(reply, maxsplit=1)[0][:LONGEST_ANSWER]
