"""Engines: prompts as tokens in, sampled tokens out."""
