"""The shop: its tables, the overlay that an episode writes to, the tools and the policy."""
