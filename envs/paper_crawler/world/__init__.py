"""The generated citation world: papers, requests, search, judgement, files and statistics."""
