"""Certificates and keys as files of a folder, for `kubectl create secret` and for kube-scheduler's own machine."""

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from edgeshare.contract.errors import InvalidRequest, Unavailable
from sharemgr.cluster.issuing.renewal import Name, Stored

OWNER_ONLY = 0o700
KEY_MODE = 0o600
CERTIFICATE_MODE = 0o644
BYTES_MAX = 64 << 10
"""What is larger is none of these: a P-256 certificate has below 1 KiB."""


class KeyFolder:
    """Holds `ca`, `tls`, `scheduler` and what else was asked for, each as `.crt` and `.key`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def held(self) -> Iterator[None]:
        """Has the folder to itself, which is made where there is none. Raises Unavailable where another process has it,
        or where it cannot be used."""
        try:
            self._path.mkdir(mode=OWNER_ONLY, parents=True, exist_ok=True)
            descriptor = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise Unavailable(f"{self._path}: cannot be used as a folder: {error.strerror}") from error
        try:
            _lock(self._path, descriptor)
            for name in Name:
                self._finish(name)
            yield
        finally:
            os.close(descriptor)

    def read(self, name: Name) -> Stored | None:
        """See Place. A key that everybody could read is not used any more."""
        certificate, key = (self._read(self._path / f"{name}.{kind}") for kind in ("crt", "key"))
        if certificate is None and key is None:
            return None
        if certificate is None or key is None:
            there, missing = ("crt", "key") if key is None else ("key", "crt")
            where = self._path / f"{name}.{there}"
            raise InvalidRequest(f"{where}: is there without {name}.{missing}: bring that back, or name another folder")
        return Stored(str(self._path / f"{name}.crt"), certificate, key)

    def write(self, name: Name, certificate: bytes, key: bytes, _authority: bytes) -> str:
        """See Place. The authority has files of its own."""
        try:
            # The key comes first, in both rounds: by that `_finish` knows in which one it was cut off.
            for kind, content, mode in (("key", key, KEY_MODE), ("crt", certificate, CERTIFICATE_MODE)):
                _write_new(self._fresh(name, kind), content, mode)
            _sync(self._path)
            for kind in ("key", "crt"):
                self._put(name, kind)
            _sync(self._path)
        except OSError as error:
            raise Unavailable(f"{self._path}: {name} cannot be written: {error.strerror}") from error
        return str(self._path / f"{name}.crt")

    def _finish(self, name: Name) -> None:
        """Brings to its end, or takes back, what a process that was killed had begun to write: a certificate is never
        left with another's key."""
        key, certificate = (self._fresh(name, kind) for kind in ("key", "crt"))
        try:
            if certificate.exists() and not key.exists():
                self._put(name, "crt")
            for fresh in (certificate, key):
                fresh.unlink(missing_ok=True)
        except OSError as error:
            raise Unavailable(f"{self._path}: {name} cannot be written: {error.strerror}") from error

    def _fresh(self, name: Name, kind: str) -> Path:
        return self._path / f".{name}.{kind}.new"

    def _put(self, name: Name, kind: str) -> None:
        self._fresh(name, kind).replace(self._path / f"{name}.{kind}")

    def _read(self, path: Path) -> bytes | None:
        try:
            # Who opens a pipe waits for somebody at its other end.
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Unavailable(f"{path}: cannot be read: {error.strerror}") from error
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > BYTES_MAX:
                raise InvalidRequest(f"{path}: is no file of at most {BYTES_MAX >> 10} KiB: name another folder")
            if path.suffix == ".key" and status.st_mode & stat.S_IROTH:
                raise InvalidRequest(f"{path}: everybody can read it: chmod 600 it, if nobody has")
            return file.read(BYTES_MAX)


def _lock(path: Path, descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise Unavailable(f"{path}: another process writes certificates there: wait for its end") from error
    except OSError as error:
        raise Unavailable(f"{path}: cannot be locked: {error.strerror}") from error


def _write_new(path: Path, content: bytes, mode: int) -> None:
    # Whatever stands there, be it a link to something else, is not written to.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, KEY_MODE)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, mode)
        file.write(content)
        file.flush()
        os.fsync(descriptor)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
