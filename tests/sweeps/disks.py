"""File systems that are small, or slow: real ones, mounted for a test. They need root."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

_THROTTLE = Path("/sys/fs/cgroup/blkio/blkio.throttle.write_iops_device")
"""How many writes a second a device may take, of all processes (version 1 of control groups)."""


def _run(*command: object) -> str:
    """Run a command; skip the test if it fails."""
    done = subprocess.run([str(word) for word in command], check=False, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"mounting a file system needs root ({' '.join(done.stderr.split())})")
    return done.stdout.strip()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    _run("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder)
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


@dataclass(frozen=True)
class SlowDisk:
    """A file system whose device takes so many writes a second, and where every write waits for the device."""

    folder: Path
    device: str

    def allow(self, writes_per_s: int) -> None:
        """Set its speed; 0 is no limit."""
        _THROTTLE.write_text(f"{self.device} {writes_per_s}\n")

    def fill(self) -> None:
        """Leave no room at all."""
        size = 0
        with (self.folder / "fill").open("wb") as file:
            for step in (2**20, 2**15, 2**10):
                with contextlib.suppress(OSError):
                    while True:
                        os.posix_fallocate(file.fileno(), size, step)
                        size += step

    def make_room(self) -> None:
        """Undo ``fill``."""
        (self.folder / "fill").unlink()

    def writes(self) -> int:
        """Return how many writes its device has taken so far."""
        for line in Path(f"/sys/dev/block/{self.device}/stat").read_text().splitlines():
            return int(line.split()[4])
        raise AssertionError(self.device)


@pytest.fixture
def slow_disk(tmp_path: Path) -> Iterator[SlowDisk]:
    """An ext4 on a loop device that the kernel throttles; at full speed until the test says otherwise."""
    if not _THROTTLE.exists():
        pytest.skip(f"slowing a device down needs {_THROTTLE}")
    image, folder = tmp_path / "image", tmp_path / "slow"
    with image.open("wb") as file:
        file.truncate(8 * 2**20)
    folder.mkdir()
    _run("mkfs.ext4", "-q", "-F", "-b", 1024, "-O", "^has_journal", image)
    loop = _run("losetup", "--find", "--show", image)
    try:
        _run("mount", "-o", "sync", loop, folder)
        number = os.stat(loop).st_rdev
        disk = SlowDisk(folder, f"{os.major(number)}:{os.minor(number)}")
        yield disk
        disk.allow(0)
    finally:
        with contextlib.suppress(subprocess.CalledProcessError):
            subprocess.run(["umount", "--lazy", folder], check=True, capture_output=True)
        subprocess.run(["losetup", "--detach", loop], check=True)
