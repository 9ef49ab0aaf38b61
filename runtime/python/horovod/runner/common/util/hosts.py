"""Lists of hosts, and which rank runs where: the same placement as hvdrun's."""

import collections
import re


class HostInfo:
    """A host and the number of its slots.

    Args:
        hostname: Name of the host.
        slots: How many ranks it takes, an int.
    """

    def __init__(self, hostname, slots):
        self.hostname = hostname
        self.slots = slots

    @staticmethod
    def from_string(host_string):
        """Reads 'host:slots'.

        Args:
            host_string: Such as 'node1:4'.

        Returns: A HostInfo.

        Raises:
            ValueError: There is no colon, or no number after it.
        """
        hostname, slots = host_string.strip().rsplit(':', 1)
        return HostInfo(hostname, int(slots))


class SlotInfo:
    """The place of one rank.

    Args:
        hostname: Name of the host.
        rank: Rank of the process, as hvd.rank() returns it.
        local_rank: Local rank of the process, as hvd.local_rank() returns it.
        cross_rank: Cross rank of the process, as hvd.cross_rank() returns it.
        size: Size of the process, as hvd.size() returns it.
        local_size: Local size of the process, as hvd.local_size() returns it.
        cross_size: Cross size of the process, as hvd.cross_size() returns it.
    """

    def __init__(self, hostname, rank, local_rank, cross_rank, size=None, local_size=None, cross_size=None):
        self.hostname = hostname
        self.rank = rank
        self.size = size
        self.local_rank = local_rank
        self.local_size = local_size
        self.cross_rank = cross_rank
        self.cross_size = cross_size

    def to_response_string(self):
        """The numbers as text.

        Returns: 'rank,size,local_rank,local_size,cross_rank,cross_size'
        """
        return ','.join(str(number) for number in (self.rank, self.size, self.local_rank, self.local_size,
                                                   self.cross_rank, self.cross_size))

    def __eq__(self, other):
        return isinstance(other, SlotInfo) and self.__dict__ == other.__dict__

    def __hash__(self):
        return hash((self.hostname, self.rank))


INVALID_SLOT_INFO = SlotInfo(hostname='', rank=-1, local_rank=-1, cross_rank=-1, size=-1, local_size=-1, cross_size=-1)


def parse_hosts(hosts_string):
    """Reads a list of hosts.

    Args:
        hosts_string: Such as 'node1:4,node2:4'.

    Returns: A list of HostInfo.

    Raises:
        ValueError: It is not such a list.
    """
    hosts = [host.strip() for host in hosts_string.split(',')]
    if not all(re.match(r'^[\w.-]+:[0-9]+$', host) for host in hosts):
        raise ValueError('Invalid host input, please make sure it has format as : worker-0:2,worker-1:2.')
    return [HostInfo.from_string(host) for host in hosts]


def parse_hosts_and_slots(hosts):
    """Reads a list of hosts.

    Args:
        hosts: Such as 'node1:4,node2:4'.

    Returns: A pair: the names in their order, and a dict {name: slots}.

    Raises:
        ValueError: It is not such a list.
    """
    infos = parse_hosts(hosts)
    return [info.hostname for info in infos], {info.hostname: info.slots for info in infos}


def parse_host_files(filename):
    """Reads a host file, one `name slots=N` a line; empty lines and comments (#) are skipped.

    Args:
        filename: Path of the file.

    Returns: A list of hosts such as 'node1:4,node2:4'.

    Raises:
        ValueError: A line has another form.
        OSError: The file cannot be read.
    """
    hosts = []
    with open(filename) as file:
        for number, line in enumerate(file, 1):
            words = line.split('#', 1)[0].split()
            if not words:
                continue
            slots = [word[len('slots='):] for word in words[1:] if word.startswith('slots=')]
            if not slots or not slots[0].isdigit():
                raise ValueError('{}:{}: "{}" is no line of a host file; write "name slots=N".'
                                 .format(filename, number, line.strip()))
            hosts.append('{}:{}'.format(words[0], slots[0]))
    return ','.join(hosts)


def get_host_assignments(hosts, min_num_proc, max_num_proc=None):
    """Assigns each rank its place; hosts are filled in their order.

    Args:
        hosts: A list of HostInfo.
        min_num_proc: How many ranks are needed at least.
        max_num_proc: How many ranks are placed at most; None: as many as there are slots.

    Returns: A list of SlotInfo, in order of rank.

    Raises:
        ValueError: There are fewer slots than min_num_proc.
    """
    slots = []
    hosts_of = collections.OrderedDict()  # local rank -> hosts that have it
    for host in hosts:
        for local_rank in range(host.slots):
            if max_num_proc is not None and len(slots) == max_num_proc:
                break
            others = hosts_of.setdefault(local_rank, [])
            others.append(host.hostname)
            slots.append(SlotInfo(host.hostname, len(slots), local_rank, len(others) - 1))
    if len(slots) < min_num_proc:
        raise ValueError('Requested more processes ({}) than there are available slots ({})'.format(
            min_num_proc, len(slots)))
    local_sizes = collections.Counter(slot.hostname for slot in slots)
    for slot in slots:
        slot.size = len(slots)
        slot.local_size = local_sizes[slot.hostname]
        slot.cross_size = len(hosts_of[slot.local_rank])
    return slots
