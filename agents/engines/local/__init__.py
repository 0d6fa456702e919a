"""The engine in this process, over transformers models."""
