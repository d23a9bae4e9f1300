"""The names that `import sphynx` offers, by task: `planning`, `designing` (stage by stage: `searching`, `training`),
`networks`, `compiling`, `asking`, `serving`.

The package `sphynx` itself finds these names when they are first used; nothing here is imported before.
"""
