"""The learner: batches of paths in, updated weights out."""
