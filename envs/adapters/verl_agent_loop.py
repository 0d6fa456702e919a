"""verl: an agent loop that plays any environment, one trajectory a run.

Name it in the file that ``actor_rollout_ref.rollout.agent.agent_loop_config_path`` points to::

    - name: turngym
      _target_: turngym.envs.adapters.verl_agent_loop.TextEnvAgentLoop

and make rows with :func:`~turngym.envs.adapters.verl_rows.verl_rows`, whose column ``agent_name``
selects it. The ids that were sampled are the ids that are trained on; the environment's text has
mask 0. Every reply must end with the model's end-of-turn token, so give no stop strings: the action
is cut after the environment's stop string here. Tested with verl 0.9.1.

Limits: a broken environment raises, for verl has no trajectory without a score. verl trains one
path per run, so trees and sessions are turngym's own recipes' business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any
from uuid import uuid4

from ..core.errors import MissingExtraError
from .conversation import Conversation, Reply
from .verl_rows import WHERE

try:
    from verl.experimental.agent_loop.agent_loop import (  # pyright: ignore[reportMissingImports]
        AgentLoopBase,
        AgentLoopOutput,
    )
except ImportError as error:
    raise MissingExtraError(WHERE, "verl", "verl", error) from error


@dataclass
class _Path:
    """The tokens of a trajectory so far; mask and log-probabilities count from the prompt's end."""

    messages: list[dict[str, str]]
    ids: list[int]
    mask: list[int] = field(default_factory=list)
    logps: list[float] | None = None
    replies: int = 0
    seconds: dict[str, float] = field(
        default_factory=lambda: {"generate_sequences": 0.0, "tool_calls": 0.0}
    )


class TextEnvAgentLoop(AgentLoopBase):
    """Plays the episode that the row names; the return is the trajectory's score."""

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> AgentLoopOutput:
        """Play one episode, or as much of it as fits into the response length."""
        talk = Conversation(row["env_id"], row.get("settings"), where=WHERE)
        text = await asyncio.to_thread(talk.start, row)
        messages = [{"role": "user", "content": text}]
        path = _Path(messages, await self.ct_build_initial_tokens(messages))
        room = self.rollout_config.response_length
        scores: list[float] = []
        request = uuid4().hex
        while len(path.mask) < room:
            action = await self._generate(path, sampling_params, request, room)
            reply = await _step(talk, action, path)
            scores.append(reply.reward)
            if reply.done:
                break
            await self._observe(path, reply.text)
        return self._output(path, talk, scores, room)

    async def _generate(
        self, path: _Path, sampling: Mapping[str, Any], request: str, room: int
    ) -> str:
        """Sample a reply; its ids go to the path as they are, up to the response length.

        verl bounds prompt and reply together, so that a reply behind a short prompt may be longer.
        What is cut off is not trained on, so that the environment must not see it either.
        """
        begin = perf_counter()
        output = await self.server_manager.generate(
            request_id=request, prompt_ids=path.ids, sampling_params=dict(sampling)
        )
        path.seconds["generate_sequences"] += perf_counter() - begin
        left = room - len(path.mask)
        ids, logps = output.token_ids[:left], (output.log_probs or [])[:left]
        known = path.logps if path.mask else ([] if output.log_probs else None)
        merged, path.mask, path.logps = await self.ct_merge_assistant_token(
            path.ids,
            ids,
            path.mask,
            known,
            assistant_logprobs=logps or None,
        )
        path.ids = merged.token_ids
        path.replies += 1
        action = self.tokenizer.decode(ids, skip_special_tokens=True)
        path.messages.append({"role": "assistant", "content": action})
        return action

    async def _observe(self, path: _Path, text: str) -> None:
        """Append an observation to the path, with mask 0."""
        grown = [*path.messages, {"role": "user", "content": text}]
        merged, path.mask, path.logps = await self.ct_merge_context_msg(
            path.messages, grown, path.ids, path.mask, path.logps
        )
        path.messages, path.ids = grown, merged.token_ids

    def _output(
        self, path: _Path, talk: Conversation, scores: list[float], room: int
    ) -> AgentLoopOutput:
        first = len(path.ids) - len(path.mask)
        info = talk.info
        output = AgentLoopOutput(
            prompt_ids=path.ids[:first],
            response_ids=path.ids[first:][:room],
            response_mask=path.mask[:room],
            response_logprobs=None if path.logps is None else path.logps[:room],
            reward_score=talk.total,
            num_turns=len(path.messages),
            metrics=path.seconds,
        )
        # verl stacks extra fields over a batch: the same keys for every trajectory.
        output.extra_fields.update(
            turn_scores=scores,
            tool_rewards=[],
            status=info["status"],
            task_id=info["task_id"],
            reward_terms=dict(talk.terms),
            env_metrics=dict(info["metrics"]),
        )
        return output


async def _step(talk: Conversation, action: str, path: _Path) -> Reply:
    """Step the environment; one that waits for a server does so off the event loop."""
    begin = perf_counter()
    reply = await talk.act_beside(action)
    path.seconds["tool_calls"] += perf_counter() - begin
    return reply
