"""TLS credentials of a cluster: one key and certificate for all its processes, in memory or in a file of the owner's.

Whoever has them can run anything on the cluster.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from faultsweep.errors import InputError

_NAME = "faultsweep"
_SKEW = timedelta(days=1)
"""How far the clock of another node may be behind."""
_VALID = timedelta(days=365)


def temporary_security() -> Any:
    """Return TLS credentials that live in this process and its workers alone.

    Those of ``distributed.Security.temporary`` have an RSA key, which takes 0.01 to 0.1 s to find; this one lies on an
    elliptic curve (P-256).
    """
    import distributed

    key, certificate = _make_pair()
    keys = dict.fromkeys(("tls_client_key", "tls_scheduler_key", "tls_worker_key"), key)
    certificates = ("tls_ca_file", "tls_client_cert", "tls_scheduler_cert", "tls_worker_cert")
    return distributed.Security(require_encryption=True, **keys, **dict.fromkeys(certificates, certificate))


def _make_pair() -> tuple[str, str]:
    """Return a private key and a certificate that is signed with it, as PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, _NAME)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(issuer_name=name, subject_name=name, public_key=key.public_key())
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(_NAME)]), critical=False)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _VALID)
        .sign(key, SHA256())
    )
    as_text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return as_text, certificate.public_bytes(Encoding.PEM).decode()


def write_credentials(path: Path) -> Any:
    """Make TLS credentials, write them to a file that only its owner can read, and return them."""
    security = temporary_security()
    fields = {
        name: getattr(security, name)
        for name in ("tls_ca_file", "tls_scheduler_key", "tls_scheduler_cert", "tls_worker_key", "tls_worker_cert")
    }
    fields |= {"tls_client_key": security.tls_client_key, "tls_client_cert": security.tls_client_cert}
    with os.fdopen(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
        os.fchmod(file.fileno(), 0o600)
        json.dump(fields, file)
    return security


def read_credentials(path: Path) -> Any:
    """Return the credentials of ``write_credentials``; refuses a file that others can read."""
    import distributed

    try:
        if path.stat().st_mode & 0o077:
            raise InputError(f"{path}: others can read these credentials; chmod 600 the file")
        fields = json.loads(path.read_text())
        return distributed.Security(require_encryption=True, **fields)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"{path}: cannot read the credentials ({error})") from None
