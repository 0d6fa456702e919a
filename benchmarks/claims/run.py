"""Run claims: experiments, findings and verdicts, stored as files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ...algos.runs.interrupts import terminate_as_interrupt
from ...envs.core.errors import BadValueError, DataError, TurngymError
from ...envs.utils.disk_cache import make_folder
from ..matrix.executors import Executor
from ..matrix.machine_info import this_machine
from ..matrix.progress_view import View
from ..matrix.run import lock_folder
from .cached_arms import OnProgress
from .claim import Claim, Comparison
from .experiments import MAX_SEEDS, OTHER_SEEDS, Crawling, Experiment, Playing, Training
from .outcome import ArmRuns, Finding, Outcome
from .packing import RESULTS
from .verdicts import decide, judge_claim

ARMS = "arms"


def run_claims(
    claims: Sequence[Claim],
    out: Path,
    seeds: int,
    executor: Executor,
    view: Callable[[], View],
    on_progress: OnProgress,
) -> list[Outcome]:
    """Run claims one after the other; finished results in the folder are reused.

    An error of the package makes its claim undecided; the others continue.

    Args:
        claims: The claims.
        out: The folder: ``arms/`` has the computed arms, ``results/`` an outcome per claim.
        seeds: Seeds of every arm, from 0; a claim that has an outcome of more keeps that many.
        executor: Runs trained arms; stopped at the end.
        view: Makes the progress view of a trained arm.
        on_progress: Called with messages.

    Raises:
        BadValueError: Too few or too many seeds.
        RunLockedError: Another process works in the folder.
        KeyboardInterrupt: After the running cells were saved; the same call resumes.
    """
    from .training import PersistentExecutor

    if not 1 <= seeds <= MAX_SEEDS:
        raise BadValueError(f"claims: {seeds} seeds; expected 1 to {MAX_SEEDS}.")
    make_folder(out)
    persistent = PersistentExecutor(executor)
    found = []
    with lock_folder(out / "lock"), terminate_as_interrupt():
        try:
            for claim in claims:
                on_progress(f"{claim.name}: {claim.statement}")
                path = out / RESULTS / f"{claim.name}.json"
                count = max(seeds, _judged_seeds(claim, path))
                if count > seeds:
                    on_progress(f"{claim.name}: judged over {count} seeds before, and still is")
                outcome = run_claim(claim, out, count, persistent, view, on_progress)
                outcome.write(path)
                on_progress(f"{claim.name}: {outcome.shown} ({outcome.why})")
                found.append(outcome)
        finally:
            persistent.close()
    return found


def _judged_seeds(claim: Claim, path: Path) -> int:
    """Return the number of seeds of the outcome that is there; 0 without one of this claim."""
    if not path.exists():
        return 0
    try:
        old = Outcome.read(path)
    except DataError:
        return 0  # damaged, or of an older schema: it is written anew
    return old.seeds if old.digest == claim.digest and old.arms else 0


def run_claim(
    claim: Claim,
    out: Path,
    seeds: int,
    executor: Executor,
    view: Callable[[], View],
    on_progress: OnProgress,
) -> Outcome:
    """Run the experiment of a claim and judge it.

    One arm runs again with other seeds: the rule's answer to a difference that does not exist.
    """
    try:
        folder = out / ARMS
        arms = _run_arms(claim.experiment, folder, range(seeds), executor, view, on_progress)
        again = range(OTHER_SEEDS, OTHER_SEEDS + seeds)
        alone = claim.experiment.only(claim.repeated)
        (repeated,) = _run_arms(alone, folder, again, executor, view, on_progress)
    except TurngymError as fault:
        return Outcome(
            claim=claim,
            digest=claim.digest,
            seeds=seeds,
            verdict="not decided",
            why=f"the experiment failed: {type(fault).__name__}: {fault}",
            findings=(),
            arms=(),
            machine=this_machine("cpu"),
        )
    repeated = repeated.model_copy(update={"name": f"{claim.repeated}, other seeds"})
    by_name = {arm.name: arm for arm in (*arms, repeated)}
    findings = decide(claim.comparisons, by_name)
    verdict, why = judge_claim(findings)
    return Outcome(
        claim=claim,
        digest=claim.digest,
        seeds=seeds,
        verdict=verdict,
        why=why,
        findings=findings,
        repetition=judge_repetition(claim, by_name, repeated.name),
        arms=(*arms, repeated),
        machine=this_machine("cpu"),
    )


def judge_repetition(claim: Claim, arms: Mapping[str, ArmRuns], again: str) -> tuple[Finding, ...]:
    """Compare an arm with its repetition, by every measure of the claim, as if one were better."""
    by_measure = {comparison.measure: comparison for comparison in reversed(claim.comparisons)}
    comparisons = [
        Comparison(
            better=again,
            worse=claim.repeated,
            measure=measure,
            higher=like.higher,
            min_effect=like.min_effect,
            unit=like.unit,
            floor=like.floor,
        )
        for measure, like in by_measure.items()
    ]
    return tuple(finding for one in comparisons for finding in decide([one], arms))


def _run_arms(
    experiment: Experiment,
    folder: Path,
    seeds: range,
    executor: Executor,
    view: Callable[[], View],
    on_progress: OnProgress,
) -> tuple[ArmRuns, ...]:
    if isinstance(experiment, Training):
        from .training import run_training

        return run_training(experiment, seeds, folder, executor, view)
    if isinstance(experiment, Playing):
        from .playing import run_playing

        return run_playing(experiment, seeds, folder, on_progress)
    if isinstance(experiment, Crawling):
        from .playing import run_crawling

        return run_crawling(experiment, seeds, folder, on_progress)
    from .planning import run_planning

    return run_planning(experiment, seeds, folder, on_progress)
