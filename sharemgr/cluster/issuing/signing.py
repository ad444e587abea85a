"""The importer of ``cryptography``: makes keys and certificates, and reads those that are there."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import Self

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from edgeshare.contract.errors import InvalidRequest
from sharemgr.cluster.issuing.renewal import AUTHORITY_DAYS, COMMON_NAMES, Facts, Name, Stored

BACKDATED = timedelta(minutes=5)
"""It holds by a clock that is behind, too (client-go, util/cert: as long)."""

USAGES = {
    **dict.fromkeys((Name.SERVER, Name.STATUS_SERVER, Name.MANAGER), ExtendedKeyUsageOID.SERVER_AUTH),
    **dict.fromkeys((Name.CLIENT, Name.STATUS_CLIENT), ExtendedKeyUsageOID.CLIENT_AUTH),
}

UNREADABLE = (
    *(ValueError, TypeError, UnsupportedAlgorithm),
    *(x509.DuplicateExtension, x509.InvalidVersion, x509.UnsupportedGeneralNameType),
)
"""What the library raises for what others wrote."""


class Pair:
    """A certificate with its key, a P-256 one."""

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self._certificate = certificate
        self._key = key

    @classmethod
    def read(cls, stored: Stored) -> Self:
        """Raises InvalidRequest where it is none, or none that could be renewed: its key another's, or encrypted."""
        certificate = _read_certificate(stored.where, stored.certificate)
        try:
            key = serialization.load_pem_private_key(stored.key, password=None)
        except UNREADABLE as error:
            # The library's words for it are some lines long, and may have the key in them.
            raise InvalidRequest(f"{stored.where}: its key cannot be read: it has to be PEM, not encrypted") from error
        if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
            raise InvalidRequest(f"{stored.where}: its key is no P-256 key, which edgeshare's are: name another place")
        if _public(certificate) != _public(key):
            raise InvalidRequest(
                f"{stored.where}: its key is another certificate's: bring back the one that is its own"
            )
        return cls(certificate, key)

    @classmethod
    def authority(cls, now: datetime, before: "Pair | None") -> Self:
        """A new one, signed by itself. With the key of the one ``before`` it, if there is one: each of the two
        certificates then stands for what the other one signed."""
        key = _new_key() if before is None else before._key
        usage = x509.KeyUsage(False, False, False, False, False, True, False, False, False)
        builder = (
            _builder(Name.AUTHORITY, key, now, AUTHORITY_DAYS)
            .issuer_name(_subject(Name.AUTHORITY))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
        )
        return cls(builder.sign(key, hashes.SHA256()), key)

    def issue(self, name: Name, hosts: Iterable[str], now: datetime, days: int) -> "Pair":
        """A new certificate of a leaf, with a new key, signed by this authority."""
        key = _new_key()
        usage = x509.KeyUsage(True, False, False, False, False, False, False, False, False)
        signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = (
            _builder(name, key, now, days)
            .issuer_name(self._certificate.subject)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.ExtendedKeyUsage([USAGES[name]]), critical=False)
            .add_extension(signer, critical=False)
        )
        names = [_general_name(host) for host in sorted(hosts)]
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return Pair(builder.sign(self._key, hashes.SHA256()), key)

    def facts(self, where: str, authority: "Pair | None") -> Facts:
        """What a plan goes by. Raises InvalidRequest where the certificate says what nobody can read."""
        try:
            return Facts(
                where=where,
                begins=self._certificate.not_valid_before_utc,
                ends=self.ends,
                common_name=_common_name(self._certificate),
                hosts=frozenset(_hosts(self._certificate)),
                uses=frozenset(_uses(self._certificate)),
                signed=authority is not None and authority._has_signed(self._certificate),
            )
        except UNREADABLE as error:
            raise InvalidRequest(f"{where}: the certificate cannot be understood: name another place") from error

    def is_in(self, where: str, certificate: bytes) -> bool:
        """Whether that is this certificate alone, to the letter: False where it is an older one of the same key. Raises
        InvalidRequest where it is anything else."""
        if certificate == self.certificate_pem:
            return True
        if _public(_read_certificate(where, certificate)) != _public(self._key):
            raise InvalidRequest(f"{where}: is another authority's than the one that would sign: move the Secret away")
        return False

    @property
    def ends(self) -> datetime:
        """When the certificate holds no more."""
        return self._certificate.not_valid_after_utc

    @property
    def certificate_pem(self) -> bytes:
        """The certificate."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """The pair's key, not encrypted."""
        return self._key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    def _has_signed(self, certificate: x509.Certificate) -> bool:
        try:
            certificate.verify_directly_issued_by(self._certificate)
        except (ValueError, TypeError, InvalidSignature):
            return False
        return True


def certificate_end(where: str, text: bytes) -> datetime:
    """When the first certificate of a file holds no more: that of its owner, before those that signed it. Raises
    InvalidRequest where there is none."""
    try:
        return x509.load_pem_x509_certificates(text)[0].not_valid_after_utc
    except UNREADABLE as error:
        raise InvalidRequest(f"{where}: is no certificate in PEM that says when it ends") from error


def _read_certificate(where: str, text: bytes) -> x509.Certificate:
    try:
        certificates = x509.load_pem_x509_certificates(text)
    except UNREADABLE as error:
        raise InvalidRequest(f"{where}: is no certificate in PEM: bring it back, or move what is there away") from error
    if len(certificates) > 1:
        raise InvalidRequest(f"{where}: there are {len(certificates)} certificates: edgeshare's stand alone")
    return certificates[0]


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _public(of: x509.Certificate | ec.EllipticCurvePrivateKey) -> bytes:
    info = serialization.PublicFormat.SubjectPublicKeyInfo
    try:
        return of.public_key().public_bytes(serialization.Encoding.DER, info)
    except UNREADABLE:
        # Of a kind that the library does not know, so of no key of ours.
        return b""


def _subject(name: Name) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, COMMON_NAMES[name])])


def _builder(name: Name, key: ec.EllipticCurvePrivateKey, now: datetime, days: int) -> x509.CertificateBuilder:
    public = key.public_key()
    return (
        x509.CertificateBuilder()
        .subject_name(_subject(name))
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _common_name(certificate: x509.Certificate) -> str:
    return ", ".join(str(each.value) for each in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME))


def _hosts(certificate: x509.Certificate) -> list[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return [str(each.value) for each in names if isinstance(each, x509.DNSName | x509.IPAddress)]


def _uses(certificate: x509.Certificate) -> list[Name]:
    extensions = certificate.extensions
    try:
        if extensions.get_extension_for_class(x509.BasicConstraints).value.ca:
            return [Name.AUTHORITY]
        usages = list(extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
    except x509.ExtensionNotFound:
        return []
    return [name for name, usage in USAGES.items() if usage in usages]
