"""Making, packing, signing, reading and unpacking entries."""
