"""Runs as they run: what `sphynx watch` shows in the terminal and on a page."""
