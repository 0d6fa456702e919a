"""Language models that come as packages from a Python package registry, and GGUF files."""
