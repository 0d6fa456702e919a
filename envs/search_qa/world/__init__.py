"""The generated universe: its facts, its articles, and questions about them."""
