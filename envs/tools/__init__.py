"""Tools that environments offer to an agent, and how actions are parsed."""
