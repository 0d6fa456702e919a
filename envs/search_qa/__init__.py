"""SearchQA-v0: questions over a generated or a given body of passages, answered by searching."""
