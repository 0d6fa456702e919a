"""The relations of the full world."""
