"""Security against a client that departs from the protocol: secret linear functionals over all that it commits to."""
