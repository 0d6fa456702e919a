"""An agent's message as dialogue acts: what it asks, proposes, tells, denies."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ...tools.action_parsing import replace_blocks
from . import lexicon as lex

_THOUGHT = re.compile(r"<think>.*?(?:</think>|$)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ParsedMessage:
    """What the customer understood of one message.

    Attributes:
        text: The message in lower case, without marks, thoughts and commas in numbers.
        acts: ``ask_email``, ``ask_name``, ``ask_order``, ..., ``ask_more``, ``propose``,
            ``done``, ``deny``, ``unavailable``, ``transfer``, ``offer``, ``inform``,
            ``smalltalk``, ``unparsed``.
        orders: Order ids in it.
        items: Item ids in it.
        methods: Payment method ids in it.
        numbers: Other numbers in it.
    """

    text: str
    acts: frozenset[str]
    orders: frozenset[str]
    items: frozenset[str]
    methods: frozenset[str]
    numbers: frozenset[str]

    def asks(self, topic: str) -> bool:
        """Tell whether the message asks about a topic."""
        return f"ask_{topic}" in self.acts


def strip_thoughts(action: str) -> str:
    """Return an action without its thoughts, also without one that is not closed."""
    return (_THOUGHT.sub("", action) if "<think>" in action else action).strip()


def normalize(text: str) -> str:
    """Return the text in lower case without thoughts, emphasis and commas in numbers."""
    text = text.lower()
    if "<think>" in text:
        text = replace_blocks(text, "<think>", "</think>", " ")
    if "*" in text or "`" in text or "__" in text:
        text = lex.MARKS.sub("", text)
    if "," in text:
        text = lex.NUMBER_COMMA.sub("", text)
    if "###" in text:
        text = lex.INJECTION.sub(" ", text)
    return text.replace("’", "'").strip()


@lru_cache(maxsize=4096)
def parse_message(message: str) -> ParsedMessage:
    """Parse a message into its dialogue acts, ids and numbers."""
    text = normalize(message)
    acts: set[str] = set()
    verb = any(pattern.search(text) for pattern in lex.VERBS.values())
    for sentence in dict.fromkeys(lex.SENTENCE.split(text)):  # one said twice adds nothing
        if sentence:
            _add_acts(sentence, verb, acts)
    orders, items, methods = (
        frozenset(p.findall(text)) for p in (lex.ORDER_ID, lex.ITEM_ID, lex.METHOD_ID)
    )
    numbers = frozenset(n for n in lex.NUMBERS.findall(text) if len(n) != 10)
    if not acts:
        acts.add("inform" if numbers or orders or items or len(text) > 60 else "unparsed")
    elif numbers or orders or items:
        acts.add("inform")
    return ParsedMessage(text, frozenset(acts), orders, items, methods, numbers)


def _add_acts(sentence: str, verb: bool, acts: set[str]) -> None:
    """Add the acts of one sentence; ``verb`` tells whether the message names a change."""
    asking = lex.ASKING.search(sentence) is not None
    confirming = lex.CONFIRM.search(sentence) is not None
    asked = _find_topics(sentence, confirming) if asking else ()
    acts.update(asked)
    if confirming and not (set(asked) - {"ask_more"}):
        if verb:
            acts.add("propose")
        elif not asked:
            acts.add("ask_confirm")
    if not asking and not confirming and lex.DONE.search(sentence):
        acts.add("done")
    if lex.DENY.search(sentence):
        acts.add("deny")
    if lex.UNAVAILABLE.search(sentence):
        acts.add("unavailable")
    if lex.TRANSFER.search(sentence) and not asking:
        acts.add("transfer")
    if lex.OFFER.search(sentence) and (asking or confirming):
        acts.add("offer")
    if not acts and lex.SMALL.search(sentence):
        acts.add("smalltalk")


_ASKED = (
    ("ask_email", lex.EMAIL),
    ("ask_name", lex.NAME),
    ("ask_order", lex.ORDER),
    ("ask_items", lex.ITEMS),
    ("ask_options", lex.OPTIONS),
    ("ask_reason", lex.REASON),
    ("ask_payment", lex.PAYMENT),
    ("ask_address", lex.ADDRESS),
    ("ask_more", lex.MORE),
)


def _find_topics(sentence: str, confirming: bool) -> tuple[str, ...]:
    """Return what a question is about; one that asks for a yes is about nothing else."""
    if confirming and _asks_only_for_yes(sentence):
        return ()
    if lex.REMINDER.search(sentence):
        return ()
    found = [act for act, pattern in _ASKED if pattern.search(sentence)]
    if lex.WHO.search(sentence) and "ask_email" not in found and "ask_name" not in found:
        found.append("ask_email")
    if "ask_email" in found and "ask_address" in found and "shipping" not in sentence:
        found.remove("ask_address")
    if "ask_name" in found and "ask_address" in found and "name" not in sentence:
        found.remove("ask_name")
    if "ask_more" in found and len(found) > 1:
        found.remove("ask_more")
    return tuple(found)


_SLOT_PHRASES = (
    "the reason",
    "your reason",
    "which",
    "what ",
    "why",
    "your email",
    "your name",
    "zip",
    "e-mail",
    "who you",
    "your identity",
    "your order number",
    "your order id",
    "the order id",
    "the order number",
    "reason for",
    "that you have named",
    "every item",
    "all items",
    "all the items",
    "payment method you",
    "how you",
)


def _asks_only_for_yes(sentence: str) -> bool:
    """Tell whether a sentence with a word of confirmation asks for a yes and for no slot."""
    return not any(words in sentence for words in _SLOT_PHRASES)
