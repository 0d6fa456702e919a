"""What evaluations, training, playing and submissions take where nothing else is said."""

MAX_TOKENS = 64
"""Maximum tokens of one action."""
TEMPERATURE = 1.0
"""Temperature of sampled scores; greedy ones stand beside them."""
TASKS = 200
"""Tasks of an evaluation."""
