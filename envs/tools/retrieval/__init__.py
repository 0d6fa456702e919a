"""Search over passages: in memory, from an index on disk, or from a server."""
