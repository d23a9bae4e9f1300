"""The whole method in one run: what is asked for, the network in outline, how long it takes, ranking, the pipeline."""
