"""ScienceWorld beside the original: tables and live comparison."""
