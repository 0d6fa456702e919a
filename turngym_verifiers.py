"""The name under which verifiers and prime-rl find turngym's worlds (they import by top name)."""

from turngym.envs.adapters.verifiers_taskset import TextEnvironment, TextEnvTaskset

__all__ = ["TextEnvTaskset", "TextEnvironment"]
