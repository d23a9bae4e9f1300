"""Training and distillation of a design: recipes, one visible loop, evaluation."""
