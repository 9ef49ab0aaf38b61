"""The exceptions a script can get. None of them needs the runtime."""


class HorovodInternalError(RuntimeError):
    """A collective failed while it ran: a rank died or left, or the ranks disagree about a tensor.

    After a disagreement the world stays usable; after a death it is broken. The attribute
    `is_disagreement` tells the two apart.
    """

    is_disagreement = False


class HostsUpdatedInterrupt(RuntimeError):
    """The set of hosts changed; training can go on after a new rendezvous.

    Args:
        skip_sync: True when the remaining ranks already agree about the state.
    """

    def __init__(self, skip_sync=False):
        super(HostsUpdatedInterrupt, self).__init__('the set of hosts changed')
        self.skip_sync = skip_sync


def get_version_mismatch_message(name, version, installed_version):
    """The sentence for HorovodVersionMismatchError.

    Args:
        name: The package, such as torch.
        version: The version that was expected.
        installed_version: The version that is installed.

    Returns: A string.
    """
    return ('{0} version {1} was expected, but {2} is installed; install the matching version of {0}.'
            .format(name, version, installed_version))


class HorovodVersionMismatchError(ImportError):
    """A framework of another version than the expected one is installed.

    Args:
        name: The package, such as torch.
        version: The version that was expected.
        installed_version: The version that is installed.
    """

    def __init__(self, name, version, installed_version):
        super(HorovodVersionMismatchError, self).__init__(
            get_version_mismatch_message(name, version, installed_version))
        self.name = name
        self.version = version
        self.installed_version = installed_version
