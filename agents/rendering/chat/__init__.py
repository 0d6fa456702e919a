"""Chat templates: calling them, tool calls and thoughts in them, and the proof that ids grow."""

from .renderer import ChatRenderer
from .template import ChatTemplate, Role

__all__ = ["ChatRenderer", "ChatTemplate", "Role"]
