"""Running Python that a model wrote: one closed-off process per snippet."""
