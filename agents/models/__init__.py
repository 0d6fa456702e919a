"""Loading, adapting and saving causal language models."""
