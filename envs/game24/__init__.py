"""Game24-v0: make 24 out of four numbers, one operation a turn."""
