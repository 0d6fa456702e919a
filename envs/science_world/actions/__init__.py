"""What the agent can do: checks and effects of every action, in the original's wording."""
