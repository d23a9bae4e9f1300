"""The compiled core beside its bounds and peers."""
