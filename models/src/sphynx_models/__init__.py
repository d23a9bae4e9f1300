"""Trained networks for Sphynx, a folder each. Data only: `sphynx.space.shipped` reads them."""
