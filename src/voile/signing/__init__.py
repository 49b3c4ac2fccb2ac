"""Keys and signatures: who vouches for a release.

keys.py         private and public keys, trusted signers, passphrases, key files
openssh.py      the files of OpenSSH
statements.py   what is signed, and signature.json
"""

from __future__ import annotations

from voile.signing.keys import KeySource, PublicKey, SignerSource, SigningKey
from voile.signing.statements import Signature

__all__ = ["KeySource", "PublicKey", "Signature", "SignerSource", "SigningKey"]
