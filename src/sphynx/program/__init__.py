"""From a trained network to a fused fixed-point program: the artifact that private inference runs."""
