"""Which hosts there are now, and how many processes each takes."""

import os
import signal
import subprocess

SCRIPT_LIMIT_S = 60  # a script that hangs must not hang the job


class HostDiscovery:
    """Interface: subclasses tell which hosts there are now."""

    def find_available_hosts_and_slots(self):
        """The hosts that are there now.

        Returns: A dict {host: slots}.
        """
        raise NotImplementedError('{} needs a method find_available_hosts_and_slots().'.format(type(self).__name__))


class HostDiscoveryScript(HostDiscovery):
    """Asks a script that prints one host a line: 'name:slots', or 'name' where all have the same number.

    Args:
        discovery_script: A shell command; it is killed after 60 s.
        slots: Slots of hosts that the script names without a number; None: it must name them.
    """

    def __init__(self, discovery_script, slots):
        self._discovery_script = discovery_script
        self._default_slots = slots

    def find_available_hosts_and_slots(self):
        """Runs the script.

        Returns: A dict {host: slots}.

        Raises:
            RuntimeError: The script failed or took too long.
            ValueError: It printed a host without slots.
        """
        hosts = {}
        for line in filter(None, (line.strip() for line in self._run().splitlines())):
            host, colon, slots = line.rpartition(':')
            if not colon and self._default_slots is None:
                raise ValueError('The discovery script {} named the host {} without its slots; print "{}:N", or give '
                                 'a number for all.'.format(self._discovery_script, line, line))
            hosts[host if colon else line] = int(slots) if colon else self._default_slots
        return hosts

    def _run(self):
        """The hosts that the script prints; RuntimeError when it fails or takes too long."""
        process = subprocess.Popen(self._discovery_script, shell=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, universal_newlines=True, start_new_session=True)
        try:
            output, _ = process.communicate(timeout=SCRIPT_LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise RuntimeError('Failed to execute discovery script: {}. It took longer than {} s'.format(
                self._discovery_script, SCRIPT_LIMIT_S)) from None
        if process.returncode != 0:
            raise RuntimeError('Failed to execute discovery script: {}. Exit code: {}'.format(
                self._discovery_script, process.returncode))
        return output


class FixedHosts(HostDiscovery):
    """Always the same hosts, until set() names others.

    Args:
        available_hosts: A dict {host: slots}.
    """

    def __init__(self, available_hosts):
        self._available_hosts = available_hosts

    def find_available_hosts_and_slots(self):
        """The hosts that were set last.

        Returns: A dict {host: slots}.
        """
        return self._available_hosts

    def set(self, available_hosts):
        """Replaces the hosts.

        Args:
            available_hosts: A dict {host: slots}.
        """
        self._available_hosts = available_hosts
