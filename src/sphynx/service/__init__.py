"""Private inference as a service: TLS between the parties, keys, single-use bundles, server and client. No torch."""
