"""Playing a split with a model, a prompting agent or a planner."""
