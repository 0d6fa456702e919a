"""The suites of the board: definitions, frozen JSON files with every digest, sealed seasons."""
