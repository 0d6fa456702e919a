"""Measurements and pictures of PaperCrawler."""
