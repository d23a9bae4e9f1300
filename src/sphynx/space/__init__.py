"""The design space as plain values: genotypes, designs, exact ReLU counts, the budget planner. No torch."""
