"""The data structure and the protocols that every algorithm is made of."""
