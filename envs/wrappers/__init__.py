"""Gymnasium wrappers and views: recording, replay, session windows, vectors, sealed seasons."""
