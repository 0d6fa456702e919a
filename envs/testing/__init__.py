"""The public conformance kit for text environments."""
