"""What a fixed-point program is, does and costs: the artifact that private inference runs. No torch."""
