"""The supernet of a cell search: the cells to choose between, their mixture, its weights, and what makes it fast."""
