"""The rules of ALFWorld's text engine: games, states, commands, texts."""
