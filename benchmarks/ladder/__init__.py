"""The ladder: diagnostic families with one difficulty each, their oracle, scores and report."""
