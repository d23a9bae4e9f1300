"""Builds an image and runs it with what is installed here: podman or docker, or buildah without any isolation.

buildah's `--isolation chroot` works where a container runtime may not make namespaces or set limits, as inside another
container. The base image is $SPHYNX_BASE_IMAGE, or else the Dockerfile's own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

BASE = os.environ.get("SPHYNX_BASE_IMAGE", "docker.io/library/python:3.12-slim")
CHROOT = ("--isolation", "chroot")


class ToolError(Exception):
    """A tool that failed, with the end of what it wrote."""


@dataclass(frozen=True)
class Tool:
    name: str

    @property
    def isolation(self) -> Sequence[str]:
        return CHROOT if self.name == "buildah" else ()

    def do(self, *words: str) -> str:
        ran = subprocess.run([self.name, *words], capture_output=True, text=True, check=False)
        if ran.returncode:
            raise ToolError(f"{self.name} {words[0]}: {ran.stdout[-2000:]}{ran.stderr[-2000:]}")
        return ran.stdout.strip()

    def build(self, file: Path, context: Path, tag: str) -> None:
        self.do("build", *self.isolation, "-f", str(file), "--build-arg", f"BASE={BASE}", "-t", tag, str(context))

    @contextmanager
    def command(self, image: str, volumes: Sequence[str]) -> Iterator[list[str]]:
        """Give the words before those of a program that a container of this image is to run, as this user."""
        options = [f"--volume={volume}" for volume in volumes]
        options.append(f"--user={os.getuid()}:{os.getgid()}")
        if self.name != "buildah":
            yield [self.name, "run", "--rm", "--network=host", "--entrypoint=", *options, image]
            return
        container = self.do("from", image)
        try:
            yield [self.name, "run", *CHROOT, *options, container, "--"]
        finally:
            self.do("rm", container)


def tool_here() -> Tool | None:
    """Find the first tool that runs a program of the base image, which it may have to fetch."""
    for name in ("podman", "docker", "buildah"):
        if shutil.which(name) is None:
            continue
        tool = Tool(name)
        try:
            with tool.command(BASE, ()) as words:
                tool.do(*words[1:], "python", "--version")
            return tool
        except ToolError:
            continue
    return None
