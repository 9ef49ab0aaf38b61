"""Programs that still run: awaited at the exit and before the world is left, and forgotten when it broke."""

import atexit
import sys

import jax

_expected = False


def expect_programs():
    """There is a program with collectives, which may still run when the script has come to its end."""
    global _expected
    if not _expected:
        _expected = True
        atexit.register(_at_exit)  # after hvd.init(): called before that leaves the world


def _at_exit():
    if getattr(sys, 'last_value', None) is None:  # else other ranks may not come
        await_programs()


def await_programs():
    """Waits for the programs of this thread. Their errors belong to those who use their results."""
    if _expected:
        try:
            jax.effects_barrier()
        except Exception:
            pass


def forget_programs():
    """The next program does not wait for one that failed, and none is used again that knows the places of an old world."""
    if _expected:
        from jax._src import dispatch
        dispatch.runtime_tokens.clear()
        jax.clear_caches()
