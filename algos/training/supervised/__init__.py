"""Training without a rollout's forest: classifiers, reward models and value networks."""
