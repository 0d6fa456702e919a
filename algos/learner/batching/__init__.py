"""From groups of paths to padded rows or packed sequences."""
