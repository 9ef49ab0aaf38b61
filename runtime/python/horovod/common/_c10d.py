"""What a version of torch.distributed can do; imports nothing of it."""


def is_extensible(c10d):
    """Whether Python can extend the class Backend of this module of torch._C: since PyTorch 2.14."""
    if not hasattr(c10d, 'Backend'):
        return False
    try:
        type('Probe', (c10d.Backend,), {})(0, 1)
    except TypeError:  # no constructor
        return False
    return True
