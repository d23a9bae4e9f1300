"""Linear maps between two activations as one: affine maps kept symbolic, kernels composed, chains cut by cost."""
