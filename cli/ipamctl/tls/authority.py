"""Owns making certificates: an authority of our own, and what it signs for members and clients.

A member's certificate carries its name as `URI:ipamd://member/NAME`: that is how members know each other, whatever
address they have at the moment. A client's may open connections only, never answer them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ipamctl.exits import Refused

AUTHORITY_DAYS = 3650
CERTIFICATE_DAYS = 730
MEMBER_URI = "ipamd://member/"
CLIENT_URI = "ipamd://client/"
_EARLIER = timedelta(hours=1)
"""A certificate counts from a little before it was made: clocks differ."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}")
_DNS_NAME = re.compile(r"(\*\.)?[A-Za-z0-9]([A-Za-z0-9-]{0,62})(\.[A-Za-z0-9]([A-Za-z0-9-]{0,62}))*\.?")


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key, as PEM."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True)
class Wanted:
    """What a certificate is for: its name, and the names and addresses under which its bearer is reached."""

    name: str
    dns: Sequence[str] = ()
    ip: Sequence[str] = ()
    client: bool = False


def make_authority(common_name: str) -> Pair:
    """A new authority. Raises Refused."""
    check_name(common_name)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(common_name)
    now = _now()
    usage = x509.KeyUsage(**{**_USAGE, "key_cert_sign": True, "crl_sign": True, "digital_signature": False})
    made = (
        _builder(subject, subject, key.public_key(), now, now + timedelta(days=AUTHORITY_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .sign(key, hashes.SHA256())
    )
    return Pair(_pem(made), _key_pem(key))


def issue(authority: Pair, wanted: Wanted) -> Pair:
    """A new key and a certificate for it. Raises Refused."""
    check_name(wanted.name)
    key = ec.generate_private_key(ec.SECP256R1())
    names = x509.SubjectAlternativeName([*_identity(wanted), *_reached(wanted)])
    certificate = _signed(authority, _subject(wanted.name), key.public_key(), names, _purposes(client=wanted.client))
    return Pair(certificate, _key_pem(key))


def renew(authority: Pair, old: bytes) -> bytes:
    """The same certificate for the same key, with all its time before it. Raises Refused."""
    found = _load(old)
    try:
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        purposes = found.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        raise Refused("the certificate is none that ipamctl tls issue has made") from None
    key = found.public_key()
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise Refused("the certificate is none that ipamctl tls issue has made")
    return _signed(authority, found.subject, key, names, purposes)


def ends(certificate: bytes) -> datetime:
    """When a certificate ends. Raises Refused."""
    return _load(certificate).not_valid_after_utc


def check_name(name: str) -> str:
    """Raises Refused for a name that no member could have, or that no certificate could carry."""
    if not _NAME.fullmatch(name):
        raise Refused(f"{name!r} is not a name: 1 to 64 of A-Z a-z 0-9 _ . + -, the first a letter or digit")
    return name


_USAGE = {
    "digital_signature": True,
    "content_commitment": False,
    "key_encipherment": False,
    "data_encipherment": False,
    "key_agreement": False,
    "key_cert_sign": False,
    "crl_sign": False,
    "encipher_only": False,
    "decipher_only": False,
}


def _signed(
    authority: Pair,
    subject: x509.Name,
    key: ec.EllipticCurvePublicKey,
    names: x509.SubjectAlternativeName,
    purposes: x509.ExtendedKeyUsage,
) -> bytes:
    signer, signing_key = _load(authority.certificate), _signing_key(authority)
    now = _now()
    end = min(now + timedelta(days=CERTIFICATE_DAYS), signer.not_valid_after_utc)
    if end <= now:
        raise Refused("the authority's certificate has ended: make a new authority in another directory")
    made = (
        _builder(subject, signer.subject, key, now, end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(**_USAGE), critical=True)
        .add_extension(purposes, critical=False)
        .add_extension(names, critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key()), critical=False)
        .sign(signing_key, hashes.SHA256())
    )
    return _pem(made)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _identity(wanted: Wanted) -> list[x509.GeneralName]:
    return [x509.UniformResourceIdentifier(f"{CLIENT_URI if wanted.client else MEMBER_URI}{wanted.name}")]


def _reached(wanted: Wanted) -> list[x509.GeneralName]:
    """The names and addresses asked for; the own name too, where it can be a host's."""
    own = [wanted.name] if _DNS_NAME.fullmatch(wanted.name) else []
    for text in wanted.dns:
        if not _DNS_NAME.fullmatch(text):
            raise Refused(f"--dns {text!r} is not the name of a host")
    names: list[x509.GeneralName] = [x509.DNSName(text) for text in dict.fromkeys((*own, *wanted.dns))]
    return names + [x509.IPAddress(_address(text)) for text in dict.fromkeys(wanted.ip)]


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        raise Refused(f"--ip {text!r} is not an IP address") from None


def _purposes(*, client: bool) -> x509.ExtendedKeyUsage:
    server = [] if client else [ExtendedKeyUsageOID.SERVER_AUTH]
    return x509.ExtendedKeyUsage([*server, ExtendedKeyUsageOID.CLIENT_AUTH])


def _subject(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _load(pem: bytes) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        raise Refused("the certificate is not PEM, or damaged") from error


def _signing_key(authority: Pair) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(authority.key, None)
    except (ValueError, TypeError) as error:
        raise Refused("the authority's key is not PEM, or needs a password") from error
    own = _load(authority.certificate).public_key()
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != own:
        raise Refused("the authority's key does not belong to its certificate")
    return key


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)
