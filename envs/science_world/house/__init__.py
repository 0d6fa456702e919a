"""The house: its state in columns, the generator it draws from, and how it is built."""
