"""From networks to programs: readers, fusion, fixed point, and the checks of what was compiled."""
