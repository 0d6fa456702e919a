"""Build what an environment is made of from its settings: the shop with its tasks, the customer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from ..core.errors import BadValueError, UnknownNameError
from ..core.settings import check_integer
from .customer.interface import Customer
from .customer.proposals import STRICTNESS
from .customer.scripted import RuleCustomer, SilentCustomer
from .knowledge import Knowledge
from .shop.generate import SIZES
from .shop.semantics import get_semantics
from .shop.toolset import MICRO, get_toolset
from .tasks.generated import get_generated_tasks
from .tasks.make import BuildProof
from .tasks.published import read_tasks


def build_knowledge(
    data: str | Path | Knowledge | None,
    mode: str | None,
    proof: BuildProof,
    *,
    size: str | None,
    tiers: int | Sequence[int] | None,
    world_seed: int | None,
) -> Knowledge:
    """Return the tasks of a generated shop, or of a folder, with the tools that belong to them.

    Args:
        data: A folder with published files; knowledge as it is; None for a generated shop.
        mode: How the tools behave; by default as the tasks were published.
        proof: Checks that generated tasks can be solved.
        size: Size of a generated shop.
        tiers: Difficulties of generated tasks.
        world_seed: Seed of generated shops and tasks.

    Raises:
        UnknownNameError: An unknown size or mode.
        BadValueError: Tiers that do not exist, a negative seed, or settings of generated shops
            together with ``data``.
        DataError: A file is missing or does not hold what it should.
    """
    if data is not None:
        for name, value in (("size", size), ("tiers", tiers), ("world_seed", world_seed)):
            if value is not None:
                raise BadValueError(f"Retail: {name} is for generated shops; it excludes data.")
        if isinstance(data, Knowledge):
            if mode is not None and get_semantics(mode) != data.tools.semantics:
                raise BadValueError(
                    f"Retail: mode is {mode!r}, but data is a Knowledge, whose tools behave as in "
                    f"mode {data.tools.semantics.name!r}. Leave mode out, or give the folder."
                )
            return data
        tasks = read_tasks(data)
        tools = get_toolset(tasks.mode if mode is None else get_semantics(mode).name)
        return Knowledge(size=None, source=tasks, tools=tools)
    mode = "strict" if mode is None else get_semantics(mode).name
    size = "full" if size is None else size
    if size not in SIZES:
        raise UnknownNameError("size", size, SIZES, "Retail")
    seed = 0 if world_seed is None else world_seed
    check_integer("world_seed", seed, "Retail", min=0)
    known = (1, 2) if size == "micro" else (1, 2, 3, 4, 5)
    chosen = known if tiers is None else tiers
    wanted = tuple(chosen) if isinstance(chosen, Iterable) else (chosen,)
    if not wanted or any(isinstance(tier, bool) or tier not in known for tier in wanted):
        raise BadValueError(f"Retail: tiers is {tiers!r}; expected some of {known} ({size}).")
    source = get_generated_tasks(size, seed, tuple(sorted(set(wanted))), proof)
    tools = get_toolset(mode, MICRO if size == "micro" else None)
    return Knowledge(size=size, source=source, tools=tools)


def build_customer(customer: Any, strictness: str, patience_turns: int, *, prose: bool) -> Customer:
    """Return the customer of a setting: ``"rules"``, a model behind an address, or an object.

    Args:
        customer: The setting.
        strictness: What a yes asks for.
        patience_turns: Turns without progress before the customer gives up.
        prose: Whether tasks are prose, which no rules can play.

    Raises:
        UnknownNameError: Another name, or an unknown strictness.
        BadValueError: Something that is no customer, or no patience; settings of the customer by
            rules, beside another one.
    """
    if strictness not in STRICTNESS:
        raise UnknownNameError("strictness", strictness, STRICTNESS, "Retail")
    check_integer("patience_turns", patience_turns, "Retail", min=1)
    usual = RuleCustomer()
    if customer != "rules" or prose:
        for name, value in (("strictness", strictness), ("patience_turns", patience_turns)):
            if value != getattr(usual, name):
                who = "tasks in prose have none" if customer == "rules" else "customer is another"
                raise BadValueError(
                    f"Retail: {name}={value!r} is of the customer by rules, and {who}; leave "
                    f"{name} out."
                )
    if isinstance(customer, Mapping):
        return _build_llm_customer(customer)
    if isinstance(customer, str):
        if customer != "rules":
            raise UnknownNameError("customer", customer, ("rules",), "Retail")
        return SilentCustomer() if prose else RuleCustomer(strictness, patience_turns)
    if not all(callable(getattr(customer, name, None)) for name in ("begin", "reply")):
        raise BadValueError(
            f"Retail: customer is {customer!r}; expected 'rules', {{'url': ..., 'model': ...}}, or "
            "an object with begin and reply."
        )
    return customer


def _build_llm_customer(given: Mapping[str, Any]) -> Customer:
    """Return the customer of ``{"url": ..., "model": ..., ...}``, which a language model plays."""
    from .customer.chat import ChatEndpoint
    from .customer.llm import LlmCustomer

    link = {f.name for f in fields(ChatEndpoint)}
    own = {f.name for f in fields(LlmCustomer)} - {"answers"}
    for name in given:
        if name not in link | own:
            raise UnknownNameError("setting", name, sorted(link | own), "Retail customer")
    for name in ("url", "model"):
        if name not in given:
            raise BadValueError(f"Retail: customer={dict(given)!r} lacks {name!r}.")
    answers = ChatEndpoint(**{key: value for key, value in given.items() if key in link})
    return LlmCustomer(answers=answers, **{k: v for k, v in given.items() if k in own})
