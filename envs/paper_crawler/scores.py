"""How a crawl for papers is scored (PaSa, arXiv 2501.10120, equation 2; released metrics)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

SELECTED_ABOVE = 0.5


def select_rewarded(
    found: Iterable[str],
    queue: Collection[str],
    wanted: Collection[str],
    scores: Mapping[str, float] | None = None,
) -> list[str]:
    """Return the papers of ``found`` that pay: not in the queue, and wanted or selected.

    Args:
        found: What an action returned, in order; repeated ones count once.
        queue: Papers that were found before.
        wanted: Papers that are annotated as answers.
        scores: The selector's probabilities; a paper counts above 0.5. None without a selector.
    """
    chosen = scores or {}
    return [
        paper
        for paper in dict.fromkeys(found)
        if paper not in queue and (paper in wanted or chosen.get(paper, 0.0) > SELECTED_ABOVE)
    ]


def recall_and_precision(
    scores: Mapping[str, float], wanted: Collection[str], at: Iterable[int] = (20, 50, 100)
) -> dict[str, float]:
    """Return recall and precision of a finished crawl.

    Args:
        scores: The selector's probability of every crawled paper.
        wanted: The annotated answers; none give 0 everywhere.
        at: Numbers of best-scored papers to take the recall of.

    Returns:
        ``crawler_recall`` (of all crawled), ``precision`` and ``recall`` (of those above 0.5) and
        ``recall_at_k``.
    """
    total = max(len(wanted), 1)
    selected = [paper for paper, score in scores.items() if score > SELECTED_ABOVE]
    right = sum(paper in wanted for paper in selected)
    ranked = sorted(scores, key=lambda paper: -scores[paper])
    return {
        "crawler_recall": sum(paper in wanted for paper in scores) / total,
        "precision": right / max(len(selected), 1),
        "recall": right / total,
        **{f"recall_at_{k}": sum(p in wanted for p in ranked[:k]) / total for k in at},
    }
