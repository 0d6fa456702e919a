"""Noise-v0, Judge-v0 and Rare-v0: Password with noise, and with a reward for all or nothing."""

from __future__ import annotations

from ..core.env import Episode, Verdict
from ..core.settings import check_bool, check_number
from .common import check_size
from .password import CodedDoors, Doors, describe_doors, make_code

CUT = 4.0
"""Standard deviations at which noise is cut, so that rewards have bounds."""


class Noise(CodedDoors):
    """Password whose reward is the share of right letters plus normal noise.

    What it asks for: a baseline and a scale that noise does not carry away. The difficulty is
    ``noise``, the noise's standard deviation; the metric ``right`` (share of right letters) is
    without it. An episode without a readable letter gets no noise.

    Control: ``noise=0``, where the reward tells everything and equality is the right answer.

    Args:
        size: ``"micro"``, or ``"full"``, which states the rules.
        doors: Number of doors.
        noise: Standard deviation of the noise; cut at four of them.
        render_mode: See :class:`TextEnv`.

    Raises:
        UnknownNameError: No such size.
        BadValueError: ``doors`` or ``noise`` is out of range.
    """

    def __init__(
        self,
        *,
        size: str = "micro",
        doors: int = 4,
        noise: float = 1.0,
        render_mode: str | None = None,
    ) -> None:
        self.noise = check_number("noise", noise, "Noise", min=0.0, max=100.0)
        self.chance = self.noise > 0
        self.reward_noise = CUT * self.noise
        code = make_code(doors, "Noise")
        rules = describe_doors(
            doors, "After the last door you are told roughly how many were right."
        )
        super().__init__(
            code,
            "" if check_size(size, "Noise") else rules,
            reward_range=(-self.reward_noise, 1.0 + self.reward_noise),
            render_mode=render_mode,
        )

    def pay(self, episode: Episode[Doors]) -> dict[str, float]:
        """Return the share of right letters, and the noise as a term of its own."""
        terms = {"outcome": self.share(episode)}
        if self.noise and any(episode.state.written):
            drawn = episode.random.generator.standard_normal()
            terms["noise"] = self.noise * float(min(max(drawn, -CUT), CUT))
        return terms


class Judge(CodedDoors):
    """Password that pays for all doors or for none, with a verdict on each letter.

    What it asks for: credit from turns whose worth only a judge sees. The difficulty is ``doors``:
    a policy that knows nothing opens all of them with probability ``3 ** -doors``, and until it
    does only verdicts tell it anything.

    Control: ``judged=False``, where verdicts are 0 and equality is the right answer.

    Args:
        size: ``"micro"``, or ``"full"``, which states the rules.
        doors: Number of doors.
        judged: Whether letters get verdicts.
        render_mode: See :class:`TextEnv`.

    Raises:
        UnknownNameError: No such size.
        BadValueError: ``doors`` is out of range.
    """

    def __init__(
        self,
        *,
        size: str = "micro",
        doors: int = 6,
        judged: bool = True,
        render_mode: str | None = None,
    ) -> None:
        name = type(self).__name__
        self.judged = check_bool("judged", judged, name)
        rules = describe_doors(doors, "The last door opens when all letters were right.")
        code = make_code(doors, name)
        super().__init__(code, "" if check_size(size, name) else rules, render_mode=render_mode)

    def pay(self, episode: Episode[Doors]) -> dict[str, float]:
        """Return 1 where all letters were right, else 0."""
        return {"outcome": float(self.share(episode) == 1.0)}

    def judge(self, right: bool) -> Verdict:
        """Return the verdict on a letter, 0 where nobody judges."""
        return super().judge(right) if self.judged else 0


class Rare(Judge):
    """Password that pays for all doors or for none: success that almost never happens.

    What it asks for: finding and keeping rare successes. The difficulty is ``doors``: a policy that
    writes letters at random succeeds with probability ``3 ** -doors`` (0.4 % with five). Nobody
    judges single letters.

    Control: ``doors=1``, where a third of the episodes succeed and equality is the right answer.

    Args:
        size: ``"micro"``, or ``"full"``, which states the rules.
        doors: Number of doors.
        render_mode: See :class:`TextEnv`.

    Raises:
        UnknownNameError: No such size.
        BadValueError: ``doors`` is out of range.
    """

    def __init__(
        self, *, size: str = "micro", doors: int = 5, render_mode: str | None = None
    ) -> None:
        super().__init__(size=size, doors=doors, judged=False, render_mode=render_mode)
