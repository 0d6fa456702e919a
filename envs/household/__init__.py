"""ALFWorld's text game in pure Python: rooms, receptacles, things, and six kinds of tasks."""
