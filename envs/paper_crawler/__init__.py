"""PaperCrawler-v0: find every paper that answers a request, by searching and by citations."""
