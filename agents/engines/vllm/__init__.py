"""The engine over vLLM."""
