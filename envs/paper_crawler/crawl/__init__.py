"""The rules of a crawl: what is written, what it does, what it costs, what comes next."""
