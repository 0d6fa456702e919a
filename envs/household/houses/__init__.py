"""Generated houses: rooms and tasks drawn by the statistics of the original."""
