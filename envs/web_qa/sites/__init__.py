"""Where the pages come from: a generated site, a folder of files, or the web."""
