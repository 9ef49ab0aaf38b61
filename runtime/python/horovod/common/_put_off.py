"""Submissions that their owner puts off until it waits for them itself, as torch's DistributedOptimizer does.

Any other call that waits for other ranks submits them first: those may wait for them, and this rank for those.
"""

# Of submissions -> the function that submits them. A call that has to be fast looks here before submit_all().
owners = {}


def begin(owner, submit):
    """owner has put something off; submit() is called at most once, and raises nothing."""
    owners[owner] = submit


def end(owner):
    """Nothing is put off any more, or the owner is going to wait for it."""
    owners.pop(owner, None)


def submit_all():
    while owners:
        try:
            _, submit = owners.popitem()
        except KeyError:
            return  # another thread submits the last ones
        submit()
