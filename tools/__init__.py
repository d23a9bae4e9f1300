"""Tools that a clone has beside the package: packing models, command lines of benchmarks."""
