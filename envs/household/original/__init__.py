"""ALFWorld's own games, read from their files."""
