"""The shop: tables, the overlay that an episode writes to, and the tools."""
