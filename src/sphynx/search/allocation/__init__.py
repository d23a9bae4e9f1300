"""Where the ReLUs of a stream network go: which C each block gets of a budget."""
