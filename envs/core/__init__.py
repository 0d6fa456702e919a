"""The contract of every environment: episodes, tasks, forks, randomness."""
