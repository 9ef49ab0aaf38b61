"""A key that the processes of one job share, and proofs of knowing it."""

import hashlib
import hmac
import secrets

HOROVOD_SECRET_KEY = '_HOROVOD_SECRET_KEY'
DIGEST_LENGTH = 32


def make_secret_key():
    """Makes a key.

    Returns: 32 random bytes.
    """
    return secrets.token_bytes(DIGEST_LENGTH)


def compute_digest(key, message):
    """The HMAC-SHA256 of a message.

    Args:
        key: The key, bytes.
        message: The message, bytes.

    Returns: 32 bytes.
    """
    return hmac.new(key, message, hashlib.sha256).digest()


def check_digest(key, message, digest):
    """Compares a digest with that of the message, in constant time.

    Args:
        key: The key, bytes.
        message: The message, bytes.
        digest: The digest to check, bytes.

    Returns: True or False.
    """
    return hmac.compare_digest(compute_digest(key, message), digest)
