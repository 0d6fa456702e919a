"""Tasks: made from a seed, checked, stored, made again."""
