"""pass@k and pass^k from n tries of a task, without bias (arXiv 2107.03374 and 2406.12045)."""

from __future__ import annotations

from math import comb

from ...envs.errors import BadValueError


def pass_any(tries: int, solved: int, k: int) -> float:
    """pass@k: the chance that at least one of ``k`` tries solves the task.

    Args:
        tries: Tries that were made.
        solved: Tries that solved the task.
        k: Tries that the chance is asked for; at most ``tries``.

    Raises:
        BadValueError: The numbers do not fit.
    """
    _check(tries, solved, k)
    return 1.0 - comb(tries - solved, k) / comb(tries, k)


def pass_all(tries: int, solved: int, k: int) -> float:
    """pass^k: the chance that all of ``k`` tries solve the task; see :func:`pass_any`."""
    _check(tries, solved, k)
    return comb(solved, k) / comb(tries, k)


def _check(tries: int, solved: int, k: int) -> None:
    if not (1 <= k <= tries and 0 <= solved <= tries):
        raise BadValueError(
            f"pass@k: {tries} tries, {solved} solved, k {k}; expected 1 <= k <= tries and "
            "0 <= solved <= tries."
        )
