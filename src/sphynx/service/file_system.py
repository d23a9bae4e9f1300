"""Tell whether a folder is on a file system that several processes can share a SQLite log on: not on a network's.

The ledger's write-ahead log needs memory that its processes share and locks that the kernel keeps. Between machines
there is neither: two of them could burn the same bundle.
"""

from __future__ import annotations

import re
from pathlib import Path

from sphynx.errors import InputError
from sphynx.system import mounts

REMOTE = {
    *("9p", "afs", "beegfs", "ceph", "cifs", "coda", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4"),
    *("ocfs2", "orangefs", "panfs", "pvfs2", "smb2", "smb3", "smbfs"),
    *("prl_fs", "vboxsf", "virtiofs", "vmhgfs"),  # a virtual machine's folders of its host
}
REMOTE_FUSE = {
    *("ceph", "ceph-fuse", "curlftpfs", "davfs", "davfs2", "gcsfuse", "glusterfs", "goofys", "juicefs", "lizardfs"),
    *("mfs", "moosefs", "mount.davfs", "portal", "rclone", "s3fs", "seaweedfs", "smbnetfs", "sshfs", "vmhgfs-fuse"),
}


def check_local(folder: Path) -> None:
    """A folder that exists."""
    kind = kind_of(folder)
    if kind in REMOTE or kind.removeprefix("fuse.") in REMOTE_FUSE:
        raise InputError(
            f"bundles cannot be kept on a network file system ({kind}): two machines could use the same one",
            where=str(folder),
            remedy="Keep them on a disk of this machine: `state=DIR`.",
        )


def kind_of(folder: Path) -> str:
    """The kind of file system as mount(8) calls it; "" if that is not known, and then nothing is refused."""
    inside = folder.resolve()
    longest, kind = -1, ""
    for line in mounts():
        place, _, source = line.partition(" - ")
        mounted_at = Path(re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), place.split(" ")[4]))
        if inside.is_relative_to(mounted_at) and len(mounted_at.parts) >= longest:  # a later one hides an earlier one
            longest, kind = len(mounted_at.parts), source.split(" ")[0]
    return kind
