"""Log-probabilities, entropies and values of tokens."""
