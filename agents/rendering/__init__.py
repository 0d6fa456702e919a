"""Texts to token ids: plain transcripts and chat templates."""
