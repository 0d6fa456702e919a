"""MixedTasks-v0: environments mixed in given shares."""
