"""Two-party protocols over the compiled core: oblivious transfer, linear layers, ReLU."""
