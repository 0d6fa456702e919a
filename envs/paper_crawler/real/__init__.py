"""PaSa's own files and live search engines behind PaperCrawler-v0; see :func:`open_real`."""

from .library import open_real

__all__ = ["open_real"]
