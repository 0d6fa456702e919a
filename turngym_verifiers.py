"""The top-level name by which verifiers and prime-rl import turngym's environments."""

from turngym.envs.adapters.verifiers_taskset import TextEnvironment, TextEnvTaskset

__all__ = ["TextEnvTaskset", "TextEnvironment"]
