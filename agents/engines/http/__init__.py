"""Engine servers: an engine in a process or machine of its own, spoken to over HTTP."""
