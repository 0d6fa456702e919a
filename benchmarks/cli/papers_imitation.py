"""`turngym papers imitation`: sessions of the expert, in the form of PaSa's rows."""

from __future__ import annotations

import json
import os
from pathlib import Path

import gymnasium as gym
from rich.console import Console
from rich.markup import escape

from ...agents.warm_start.demonstrations import Demonstrator
from ...algos.runs.progress import reporter
from ...envs.core.errors import BadValueError, DataError
from ..papers.crawl_trace import crawler_in
from .arguments import values
from .papers_options import PapersImitation


def imitation(action: PapersImitation) -> None:
    """Write the rows, a session each; the file appears whole or not at all.

    One search session per request, then papers drawn from each layer: sections that bring a
    relevant paper, and others with probability ``noise`` (PaSa, arXiv 2501.10120, section 4.1).

    Raises:
        BadValueError: Fewer than one row.
        DataError: The file is there already.
    """
    out = Path(action.out).expanduser()
    if action.n < 1:
        raise BadValueError(f"papers imitation: n is {action.n}; expected 1 or more.")
    if out.exists():
        raise DataError(f"--out {action.out}: is there already; name another file.")
    settings = {
        "granularity": "session",
        "schedule": "sampled",
        "per_layer": action.per_layer,
        **({} if action.size is None else {"size": action.size}),
        **values(action.env_arg, "--env-arg"),
    }
    env = crawler_in(gym.make("PaperCrawler-v0", **settings))
    teacher = Demonstrator(env, action.split, action.seed, mistakes=action.noise)
    out.parent.mkdir(parents=True, exist_ok=True)
    draft = out.with_name(f".{out.name}.writing")
    written = 0
    try:
        with draft.open("w", encoding="utf-8") as file, reporter().bar("writing rows") as bar:
            while written < action.n:
                for talk in teacher.dialogues()[: action.n - written]:
                    [(prompt, session)] = talk
                    messages = [
                        {"role": "user", "content": f"{env.instructions}{prompt}"},
                        {"role": "assistant", "content": session},
                    ]
                    file.write(json.dumps({"messages": messages}, ensure_ascii=False) + "\n")
                    written += 1
                bar.update(written / action.n, f"{written} of {action.n}")
        os.replace(draft, out)
    finally:
        draft.unlink(missing_ok=True)
    Console().print(f"{written:,} sessions in {escape(action.out)}", highlight=False)
