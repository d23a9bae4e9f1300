"""Divide the ReLUs of a stream network among its blocks: which C each block gets of a budget."""
