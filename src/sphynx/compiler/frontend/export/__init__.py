"""Torch modules and .pt2 files, through torch.export, read into operators."""
