"""Text environments for language agents; importing this registers them with gymnasium.

Most names load their modules when first used, so that the import stays cheap.
"""

from __future__ import annotations

from lazy_loader import attach_stub

from . import registry as registry  # importing it registers the environments

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
