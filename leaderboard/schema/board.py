"""What a board shows: one row per entry, ranked, with a test against the next row."""

from __future__ import annotations

from typing import Literal

from ...envs.utils.seed_tests import Decision
from ...envs.utils.statistics import Estimate
from .base import Form
from .entry import BoardName, Budget, ReferenceName, Track

RankedBy = Literal["", "season", "rerun"]


class PairedTest(Form):
    """A row against the row below it, over the tasks that both played.

    Attributes:
        other: Id of the entry below.
        difference: Mean of this row minus mean of that one.
        p_value: Two-sided sign-flip permutation test over tasks.
        tasks: Number of tasks.
    """

    other: str
    difference: float
    p_value: float
    tasks: int


class RunTest(Form):
    """Training runs against other training runs, on the board of algorithms.

    Runs are the unit: two runs of one method differ far more than two evaluations of one run. A
    reference row has no training runs; against it the runs are compared with its score.

    Attributes:
        other: Id of the entry on the other side; the row's own where its halves are compared.
        runs: Runs of the smaller side; of a reference row, those compared with it.
        paired: Whether runs were paired by their seeds: both sides have the same ones.
        difference: Mean of the row's runs minus mean of the others.
        low95: Lower end of Student's 95 % interval (unpaired: Welch's).
        high95: Upper end.
        p_value: Two-sided, Student's t (unpaired: Welch's).
        adjusted_p: The same after Holm over the board's neighbours; of a comparison of a method
            with itself ``p_value``, since what is counted there is how often it is small.
        detectable: Smallest true difference that as many runs with this deviation find with 80 %
            power at the level .05.
        verdict: What :func:`turngym.envs.utils.seed_tests.decide_seeds` says, nothing being too
            small to matter; five runs at least.
        why: Its reason.
    """

    other: str
    runs: int
    paired: bool
    difference: float
    low95: float
    high95: float
    p_value: float
    adjusted_p: float
    detectable: float
    verdict: Decision
    why: str


class BoardRow(Form):
    """One entry on a board.

    Attributes:
        rank: From 1, over the rows of the same suite, board and track that ``ranked_by`` is set in;
            None for the others and for reference rows.
        ranked_by: Why its score can be trusted to be the agent's: it was played in a sealed
            ``season``, or a maintainer's machine played it (``rerun``). Empty for everybody else:
            environments, seeds and experts of open suites are public, so such rows serve
            reproduction and development, below the ranked ones.
        copy_of: Entry that was accepted earlier with the same actions; empty for none.
        account: Account that sent it; empty where no server took it.
        accepted: Day of acceptance; empty where nobody noted it.
        entry_id: Path of the entry below the folder of entries, as ``micro-v3/expert``.
        name: Declared by the entry.
        organisation: Declared by the entry.
        date: Declared by the entry.
        board: Which board.
        suite: Id of the suite, as ``micro-v3``.
        reference: Which reference row; None for everybody else's.
        reproduces: Entry that this one reproduces; empty for none.
        track: Terms of the board of algorithms.
        model: Name of the model.
        parameters: Number of weights.
        sampling: How actions were chosen, declared by the entry: an entry holds one kind of
            episodes, so greedy and sampled scores of a model are two rows; empty where not said.
        licence: Declared by the entry.
        signed_by: Fingerprint of the key; empty when unsigned.
        score: Ranking score; its interval is over tasks, on the board of algorithms over runs.
        success: Share of solved episodes.
        pass_at: pass@k for k = 1, 2, …
        pass_all: pass^k for k = 1, 2, …
        turns: Mean actions per episode.
        tool_calls: Mean readable actions per episode.
        errors: Episodes that ended with an error; each counts as 0.
        episodes: Episodes in all.
        runs: Score of every training run.
        used: Mean declared cost of a run.
        envs: Score per environment.
        versus_next: Test against the row below: over tasks on the board of agents, over training
            runs on that of algorithms; None in the last, and between two reference rows there.
        versus_itself: A/A: every second of its training runs, by seed, against the others; None
            for fewer than four runs, and for agents.
        versus_reproduced: A/A: its training runs against those of the entry that it reproduces;
            None where that is not on the board, and for agents.
    """

    rank: int | None
    ranked_by: RankedBy = ""
    copy_of: str = ""
    account: str = ""
    accepted: str = ""
    entry_id: str
    name: str
    organisation: str
    date: str
    board: BoardName
    suite: str
    reference: ReferenceName | None
    reproduces: str
    track: Track | None
    model: str
    parameters: int
    sampling: str = ""
    licence: str
    signed_by: str
    score: Estimate
    success: Estimate
    pass_at: tuple[float, ...]
    pass_all: tuple[float, ...]
    turns: float
    tool_calls: float
    errors: int
    episodes: int
    runs: tuple[float, ...]
    used: Budget
    envs: dict[str, Estimate]
    versus_next: PairedTest | RunTest | None
    versus_itself: RunTest | None = None
    versus_reproduced: RunTest | None = None


class Board(Form):
    """All rows of one board: of one suite version and, for algorithms, of one track.

    Attributes:
        board: Which board.
        suite: Id of the suite.
        track: Terms that the rows share; None on the board of agents.
        rows: Ranked and reference rows from the best down, then those without a rank.
        missing_references: Reference rows that do not exist yet; ``turngym leaderboard reference``
            makes them.
    """

    board: BoardName
    suite: str
    track: Track | None
    rows: tuple[BoardRow, ...]
    missing_references: tuple[ReferenceName, ...] = ()

    @property
    def sealed(self) -> bool:
        """Whether rows of a sealed season are on it."""
        return any(row.ranked_by == "season" for row in self.rows)
