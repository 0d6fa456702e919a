"""What several environments, agents and tables share that is no environment."""
