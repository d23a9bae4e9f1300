"""Speed, measured beside a bound or a peer in the same run: what `sphynx bench` prints.

One function per measurement, each returning a flat dict whose keys carry their units and stay stable.
"""
