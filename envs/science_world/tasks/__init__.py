"""The thirty tasks of ScienceWorld: variations, texts, goals, set-up and experts."""
