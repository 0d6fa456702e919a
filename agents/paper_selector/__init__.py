"""A language model that judges papers: one decision token per paper, and its training.

After PaSa's selector (arXiv 2501.10120, section 4.3): the prompt ends where the verdict begins, so
one forward pass gives the probability that the next token is ``True``.
"""
