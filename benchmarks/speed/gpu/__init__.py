"""What a first run on a GPU measures: kernels, correctness, speed, memory; one report."""
