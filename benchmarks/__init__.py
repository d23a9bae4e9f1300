"""Measurements that a clone can make: speed beside bounds and peers, networks of others, many cores."""
