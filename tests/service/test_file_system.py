"""Bundles may be kept on this machine's disks, whatever is mounted where."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from sphynx import system
from sphynx.errors import InputError
from sphynx.service.file_system import check_local, kind_of
from sphynx.service.store import Store


def mounted(folder: Path, monkeypatch: pytest.MonkeyPatch, *kinds: tuple[Path, str]) -> None:
    """As proc(5) shows it, with a local root before."""
    lines = ["21 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda1 rw"]
    for number, (where, kind) in enumerate(kinds):
        place = str(where).replace(" ", "\\040")
        lines.append(
            f"{30 + number} 21 0:{number} / {place} rw,relatime shared:7 master:2 - {kind} host:/home rw,vers=4"
        )
    (folder / "mountinfo").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(system, "MOUNTS", folder / "mountinfo")


@pytest.mark.parametrize(
    "kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "lustre", "ceph", "fuse.glusterfs"]
)
def test_network_file_systems_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    mounted(tmp_path, monkeypatch, (tmp_path, kind))
    with pytest.raises(InputError, match=rf"network file system \({kind}\)") as refused:
        Store(tmp_path / "state", quota_bytes=1000)
    assert "`state=DIR`" in refused.value.remedy
    assert not list((tmp_path / "state").rglob("*sqlite*"))


def test_what_is_mounted_last_and_deepest_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "my bundles"
    folder.mkdir()
    for kinds, found in (
        (((tmp_path, "nfs4"), (folder, "ext4")), "ext4"),
        (((folder, "nfs4"), (folder, "tmpfs")), "tmpfs"),
        (((tmp_path / "my", "nfs4"),), "ext4"),  # begins with the same letters
        (((folder / "inside", "nfs4"),), "ext4"),
        (((folder, "fuse.portable"),), "fuse.portable"),
    ):
        mounted(tmp_path, monkeypatch, *kinds)
        assert kind_of(folder) == found
        check_local(folder)
    mounted(tmp_path, monkeypatch, (folder, "nfs"))
    (tmp_path / "link").symlink_to(folder)
    assert kind_of(tmp_path / "link") == "nfs"
    monkeypatch.setattr(system, "MOUNTS", tmp_path / "nothing")
    assert kind_of(folder) == ""


@pytest.mark.skipif(not system.MOUNTS.exists() or shutil.which("df") is None, reason="needs /proc and df")
def test_the_kind_is_the_one_that_df_names(tmp_path: Path) -> None:
    for folder in (tmp_path, Path("/"), Path("/proc")):
        said = subprocess.run(["df", "-a", "--output=fstype", folder], capture_output=True, text=True, check=True)
        named = said.stdout.split()[-1]
        assert kind_of(folder) == ("" if named == "-" else named)  # in a chroot nothing may be mounted there
