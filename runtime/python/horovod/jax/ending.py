"""Running programs: waited for at exit and before the world is left, and dropped when it broke."""

import atexit
import sys

import jax

_expected = False


def expect_programs():
    """There is a program with collectives, which may still run when the script ends."""
    global _expected
    if not _expected:
        _expected = True
        atexit.register(_at_exit)  # after hvd.init(): so it is called before the world is left


def _at_exit():
    if getattr(sys, 'last_value', None) is None:  # otherwise other ranks may not arrive
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
