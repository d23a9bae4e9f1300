"""Find the commits of a source hash, which environments and cards record: `python -m tools.source_commits HASH...`.

The hash covers the package's Python files alone, so that several commits in a row may have the same one; the oldest is
printed last. A training ran on exactly these files, whether they had been committed by then or not.
"""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from sphynx.run.environment import digest_of_sources

CLONE = Path(__file__).parent.parent
PACKAGE = "src/sphynx"


def commits_with(hashes: Sequence[str], clone: Path = CLONE) -> dict[str, list[str]]:
    """List the commits of the clone's history whose package has the hash; the newest first."""
    found: dict[str, list[str]] = {wanted: [] for wanted in hashes}
    commits = _git(clone, "log", "--format=%H", "HEAD", "--", PACKAGE).split()
    with _blobs(clone) as read:
        for commit in commits:
            found.get(_hash(clone, commit, read), []).append(commit)
    return found


def hash_of_commit(commit: str, clone: Path = CLONE) -> str:
    """Hash the package's sources as they are in a commit, as `source_hash` does those that run."""
    with _blobs(clone) as read:
        return _hash(clone, commit, read)


def _hash(clone: Path, commit: str, read: Callable[[str], bytes]) -> str:
    blobs = {}
    for line in _git(clone, "ls-tree", "-r", f"{commit}:{PACKAGE}").splitlines():
        about, _, path = line.partition("\t")
        if path.endswith(".py"):
            blobs[PurePosixPath(path)] = about.split()[2]
    return digest_of_sources((str(path), read(blobs[path])) for path in sorted(blobs))


@contextmanager
def _blobs(clone: Path) -> Iterator[Callable[[str], bytes]]:
    """One process reads all files; commits share most of theirs, which are read once."""
    command = ["git", "-C", str(clone), "cat-file", "--batch"]
    kept: dict[str, bytes] = {}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        asked, answered = process.stdin, process.stdout

        def read(blob: str) -> bytes:
            if blob not in kept:
                asked.write(f"{blob}\n".encode())
                asked.flush()
                size = int(answered.readline().split()[2])
                kept[blob] = answered.read(size + 1)[:size]
            return kept[blob]

        yield read


def _git(clone: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(clone), *words], capture_output=True, text=True, check=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hashes", nargs="+", metavar="HASH")
    for wanted, commits in commits_with(parser.parse_args().hashes).items():
        print(wanted, *(commits or ["no commit of this history"]))


if __name__ == "__main__":
    main()
