"""Make, pack, sign, read and unpack entries."""
