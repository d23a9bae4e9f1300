"""Trained networks by name: the models of sphynx-models, their programs, and weights derived from both."""
