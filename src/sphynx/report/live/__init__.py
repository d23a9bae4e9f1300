"""Runs as they run: what `sphynx report --live` shows in the terminal and on a page."""
