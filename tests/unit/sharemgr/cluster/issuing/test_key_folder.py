"""The files of a folder: what is made, what is renewed, and that nothing of others is written over or lost."""

import os
import shutil
import ssl
import stat
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from edgeshare.contract.errors import EdgeshareError, InvalidRequest, Unavailable
from sharemgr.cluster.issuing.issuing import issue
from sharemgr.cluster.issuing.key_folder import KeyFolder
from sharemgr.cluster.issuing.renewal import for_assigner

NOW = datetime(2030, 6, 1, tzinfo=UTC)
DAYS = 360
HOSTS = frozenset({"edgeshare-assigner.edgeshare.svc"})
FILES = {f"{name}.{kind}" for name in ("ca", "tls", "scheduler") for kind in ("crt", "key")}
SIGNED_LATER_DAYS = 3400
"""When a new leaf would outlast the authority, and that one is there still."""


def run(folder: Path, after_days: float = 0, hosts: frozenset[str] = HOSTS) -> list[str]:
    """What a run so long after the first says."""
    place = KeyFolder(folder)
    with place.held():
        return list(issue(place, for_assigner(hosts), NOW + timedelta(days=after_days), DAYS))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def looks(folder: Path) -> dict[str, tuple[int, ...]]:
    """What of each file is another when something was written."""
    found = ((path.name, path.lstat()) for path in folder.iterdir())
    return {name: (each.st_ino, each.st_mtime_ns, each.st_mode, each.st_size) for name, each in found}


def changed(before: dict[str, bytes], after: dict[str, bytes]) -> set[str]:
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def hosts_of(folder: Path) -> set[str]:
    certificate = x509.load_pem_x509_certificate((folder / "tls.crt").read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(name.value) for name in names}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One with all of them."""
    run(tmp_path / "made")
    return tmp_path / "made"


def test_first_run_makes_all_six_files_and_nobody_else_reads_the_keys(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        told = run(tmp_path / "new")
    finally:
        os.umask(old)
    assert told == [
        f"{tmp_path}/new/{name}: made, until {until}"
        for name, until in (("ca.crt", "2040-05-29"), ("tls.crt", "2031-05-27"), ("scheduler.crt", "2031-05-27"))
    ]
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "new").iterdir()}
    assert modes == {name: 0o600 if name.endswith("key") else 0o644 for name in FILES}
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_second_run_writes_nothing(folder: Path) -> None:
    before = looks(folder)
    assert [line.partition(": ")[2] for line in run(folder, 1)] == [
        "kept, until 2040-05-29",
        *["kept, until 2031-05-27"] * 2,
    ]
    assert looks(folder) == before


def test_a_run_when_a_third_is_left_renews_both_with_new_keys_and_keeps_the_authority(folder: Path) -> None:
    before = contents(folder)
    told = run(folder, 241)
    assert ["renewed" in line for line in told] == [False, True, True]
    assert changed(before, contents(folder)) == {"tls.crt", "tls.key", "scheduler.crt", "scheduler.key"}


def test_another_name_renews_the_servers_which_keeps_those_that_it_has(folder: Path) -> None:
    before = contents(folder)
    run(folder, 1, HOSTS | {"10.0.0.7"})
    assert changed(before, contents(folder)) == {"tls.crt", "tls.key"}
    assert hosts_of(folder) == HOSTS | {"10.0.0.7"}
    run(folder, 242)
    assert hosts_of(folder) == HOSTS | {"10.0.0.7"}


def verified(authority: bytes, leaf: bytes, tmp_path: Path) -> bool:
    """Whether OpenSSL finds that the one signed the other, strictly."""
    (tmp_path / "a").write_bytes(authority)
    (tmp_path / "l").write_bytes(leaf)
    words = ["openssl", "verify", "-x509_strict", "-no_check_time", "-CAfile", tmp_path / "a", tmp_path / "l"]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def test_whoever_knows_the_authority_before_it_was_renewed_takes_what_it_signs_and_the_other_way_round(
    folder: Path, tmp_path: Path
) -> None:
    for after_days in range(241, SIGNED_LATER_DAYS - 241, 241):
        run(folder, after_days)
    before = contents(folder)
    told = run(folder, SIGNED_LATER_DAYS)
    after = contents(folder)
    assert [line.partition(": ")[2].partition(",")[0] for line in told] == ["renewed"] * 3
    assert before["ca.crt"] != after["ca.crt"]
    for authority in (before, after):
        for leaf in (before, after):
            assert verified(authority["ca.crt"], leaf["tls.crt"], tmp_path)
            assert verified(authority["ca.crt"], leaf["scheduler.crt"], tmp_path)
    run(tmp_path / "other")
    assert not verified((tmp_path / "other/ca.crt").read_bytes(), after["tls.crt"], tmp_path)


def test_each_certificate_is_its_keys_own(folder: Path) -> None:
    run(folder, 241)
    for name in ("ca", "tls", "scheduler"):
        ssl.create_default_context().load_cert_chain(folder / f"{name}.crt", folder / f"{name}.key")


def foreign_authority(folder: Path) -> str:
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc"]
    paths = ["-keyout", folder / "ca.key", "-out", folder / "ca.crt"]
    subprocess.run([*words, "-subj", "/CN=kubernetes", *paths], check=True, capture_output=True)
    return "ca.crt: is of 'kubernetes', and no authority of edgeshare's: it stays as it is"


def another_authority(folder: Path) -> str:
    run(folder / "other")
    for kind in ("crt", "key"):
        (folder / f"other/ca.{kind}").replace(folder / f"ca.{kind}")
    shutil.rmtree(folder / "other")
    return f"tls.crt: another authority than {folder}/ca.crt signed it"


def no_authority(folder: Path) -> str:
    for kind in ("crt", "key"):
        (folder / f"ca.{kind}").unlink()
    return "tls.crt: there is no authority beside it that signed it"


def no_key(folder: Path) -> str:
    (folder / "ca.key").unlink()
    return "ca.crt: is there without ca.key: bring that back"


def no_certificate(folder: Path) -> str:
    (folder / "scheduler.crt").unlink()
    return "scheduler.key: is there without scheduler.crt: bring that back"


def anothers_key(folder: Path) -> str:
    shutil.copy(folder / "scheduler.key", folder / "tls.key")
    return "tls.crt: its key is another certificate's"


def encrypted_key(folder: Path) -> str:
    key = folder / "tls.key"
    words = ["openssl", "pkey", "-aes256", "-passout", "pass:secret", "-in", key, "-out", folder / "locked"]
    subprocess.run(words, check=True, capture_output=True)
    (folder / "locked").replace(key)
    return "tls.crt: its key cannot be read: it has to be PEM, not encrypted"


def rsa_key(folder: Path) -> str:
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-noenc", "-subj", "/CN=edgeshare-assigner-ca"]
    paths = ["-keyout", folder / "ca.key", "-out", folder / "ca.crt"]
    subprocess.run([*words, *paths], check=True, capture_output=True)
    return "ca.crt: its key is no P-256 key"


def nonsense(folder: Path) -> str:
    (folder / "scheduler.crt").write_bytes(b"nonsense")
    return "scheduler.crt: is no certificate in PEM"


def two_certificates(folder: Path) -> str:
    (folder / "tls.crt").write_bytes((folder / "tls.crt").read_bytes() + (folder / "ca.crt").read_bytes())
    return "tls.crt: there are 2 certificates: edgeshare's stand alone"


def open_key(folder: Path) -> str:
    (folder / "ca.key").chmod(0o644)
    return "ca.key: everybody can read it: chmod 600 it"


def a_pipe(folder: Path) -> str:
    (folder / "tls.key").unlink()
    os.mkfifo(folder / "tls.key", 0o600)
    return "tls.key: is no file of at most 64 KiB"


def a_large_file(folder: Path) -> str:
    (folder / "tls.crt").write_bytes(b"\n" * (64 << 10) + b"\n")
    return "tls.crt: is no file of at most 64 KiB"


@pytest.mark.parametrize(
    "spoil",
    [
        *(foreign_authority, another_authority, no_authority, no_key, no_certificate, anothers_key, encrypted_key),
        *(rsa_key, nonsense, two_certificates, open_key, a_pipe, a_large_file),
    ],
)
def test_what_is_not_as_it_was_made_is_said_in_a_line_and_nothing_is_written(
    folder: Path, spoil: Callable[[Path], str]
) -> None:
    said = spoil(folder)
    before = looks(folder)
    # When both were due.
    with pytest.raises(EdgeshareError) as told:
        run(folder, 300)
    assert str(told.value).startswith(f"{folder}/{said}")
    assert "\n" not in str(told.value)
    assert looks(folder) == before


def test_an_authority_that_has_ended_is_said_and_nothing_is_written(folder: Path) -> None:
    before = contents(folder)
    with pytest.raises(InvalidRequest, match="ended on 2040-05-29, and with it all that it signed"):
        run(folder, 4000)
    assert contents(folder) == before


def test_one_that_was_cut_off_between_key_and_certificate_goes_on(folder: Path) -> None:
    wanted = contents(folder)
    # The key is in its place, the certificate beside its own.
    (folder / "tls.crt").rename(folder / ".tls.crt.new")
    (folder / "tls.crt").write_bytes((folder / "scheduler.crt").read_bytes())
    run(folder)
    assert contents(folder) == wanted


def test_one_that_was_cut_off_before_it_put_anything_in_its_place_leaves_nothing(folder: Path) -> None:
    wanted = contents(folder)
    (folder / ".tls.key.new").write_bytes(b"half of a k")
    run(folder)
    assert contents(folder) == wanted
    (folder / ".tls.key.new").write_bytes(b"a whole key")
    (folder / ".tls.crt.new").write_bytes(b"half of a certifica")
    run(folder)
    assert contents(folder) == wanted


def test_nothing_is_written_through_a_link(folder: Path, tmp_path: Path) -> None:
    others = tmp_path / "others"
    others.write_bytes(b"others")
    (folder / ".tls.key.new").symlink_to(others)
    (folder / "tls.crt").replace(tmp_path / "linked")
    (folder / "tls.crt").symlink_to(tmp_path / "linked")
    linked = (tmp_path / "linked").read_bytes()
    run(folder, 241)
    assert (others.read_bytes(), (tmp_path / "linked").read_bytes()) == (b"others", linked)
    assert set(contents(folder)) == FILES
    load_pem_private_key((folder / "tls.key").read_bytes(), None)


def test_one_process_at_a_time_has_the_folder(folder: Path) -> None:
    with KeyFolder(folder).held(), pytest.raises(Unavailable, match="another process writes certificates there"):
        run(folder)
    run(folder)


def test_a_folder_that_cannot_be_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match="file: cannot be used as a folder"):
        run(tmp_path / "file")
