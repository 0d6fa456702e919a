"""The engine: parser, one step, lists of actions."""
