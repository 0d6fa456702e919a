"""Adapters of the environments to other trainers, agents and servers.

Each adapter is one small file over :class:`~turngym.envs.adapters.conversation.Conversation` and
:mod:`turngym.envs.adapters.tool_view`: ``trl_environment`` (TRL), ``verifiers_taskset`` (verifiers
and prime-rl), ``verl_agent_loop`` (verl), ``skyrl_env`` (SkyRL-gym), ``openenv_server`` (OpenEnv),
``mcp_server`` (MCP) and ``openai_tools`` (tool schemas). None is imported with the environments;
those that need the other package import it when they are imported themselves.
"""
