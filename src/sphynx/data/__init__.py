"""Image data sets: opening them, splitting them, and batches augmented on the training device."""
