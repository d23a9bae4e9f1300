"""From networks to programs: frontends, fusion, fixed point, and the checks of what was compiled."""
