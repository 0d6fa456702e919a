"""MathWord-v0: word problems, generated or a user's own, answered by a number."""
