"""Place the reduce cells: the paper's Algorithm 1, its run on a data set, and the placements that keep a budget."""
