"""A key that the processes of one job share, and proofs of knowing it."""

import hashlib
import hmac
import secrets

HOROVOD_SECRET_KEY = '_HOROVOD_SECRET_KEY'
DIGEST_LENGTH = 32


def make_secret_key():
    """32 random bytes."""
    return secrets.token_bytes(DIGEST_LENGTH)


def compute_digest(key, message):
    """The HMAC-SHA256 of a message, 32 bytes."""
    return hmac.new(key, message, hashlib.sha256).digest()


def check_digest(key, message, digest):
    """Whether the digest is that of the message, in a time that tells nothing about the right one."""
    return hmac.compare_digest(compute_digest(key, message), digest)
