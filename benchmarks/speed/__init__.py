"""Speed benchmarks (pytest-benchmark) and their table."""
