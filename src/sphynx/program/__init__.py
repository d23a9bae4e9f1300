"""The fixed-point program: what it is, does and costs. It is the artifact that private inference runs. No torch."""
