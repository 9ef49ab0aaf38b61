"""The place of a rank in the runtime's world where torchrun, torch.multiprocessing or a shell has started the ranks of
init_process_group, and not hvdrun: the ranks find at c10d's store which of them share a host, and tell the runtime by the variables
of docs/started-by-others.md.
"""

import json
import os
import socket
import uuid

import torch.distributed as dist

_OF_LAUNCHERS = (('HOROVOD_RANK', 'HOROVOD_SIZE'), ('OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_SIZE'),
                 ('SLURM_PROCID', 'SLURM_STEP_NUM_TASKS'), ('PMI_RANK', 'PMI_SIZE'))  # variables that hvd.init() knows
_STATED = ('HOROVOD_RANK', 'HOROVOD_SIZE', 'HOROVOD_LOCAL_RANK', 'HOROVOD_LOCAL_SIZE', 'HOROVOD_HOSTNAME', 'HVD_JOB',
           'HOROVOD_GLOO_RENDEZVOUS_ADDR', 'HOROVOD_GLOO_RENDEZVOUS_PORT', 'HOROVOD_CONTROLLER', 'HOROVOD_CPU_OPERATIONS',
           'OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_SIZE')  # the last two would contradict the first


_JOB = 'torch-'  # jobs that are named here

# (name of the job, rank, hosts, variables) of the last world: if the same ranks meet again, they keep the agent and the memory shared
# through it.
_last = None


def _host():
    """Ranks share memory if all of this is equal."""
    parts = [os.environ.get('HOROVOD_HOSTNAME') or socket.gethostname(), str(os.getuid())]
    for path in ('/proc/sys/kernel/random/boot_id', '/proc/self/ns/net', '/proc/self/ns/pid', '/proc/self/ns/user'):
        try:
            parts.append(os.readlink(path) if '/ns/' in path else open(path).read().strip())
        except OSError:
            parts.append('')
    return parts


def _launcher_agrees(size):
    """Whether a launcher that hvd.init() knows has started as many ranks as there are in the group."""
    if 'TORCHELASTIC_RUN_ID' in os.environ:  # torchrun, of which srun may have started one on each host
        return False
    if os.environ.get('HVD_JOB', '').startswith(_JOB):  # of a rank that has started this process
        return False
    return any([os.environ.get(of_size) == str(size) and os.environ.get(of_rank) for of_rank, of_size in _OF_LAUNCHERS])


def variables_of(rank, hosts):
    """The variables of a rank, without those of the server. hosts: what _host() gave on each rank."""
    ours = [number for number, host in enumerate(hosts) if host == hosts[rank]]
    different = []
    for host in hosts:
        if host not in different:
            different.append(host)
    name = hosts[rank][0]
    if len([host for host in different if host[0] == name]) > 1:  # containers with the same name
        name = '{}-{}'.format(name, different.index(hosts[rank]))
    return {'HOROVOD_RANK': str(rank), 'HOROVOD_SIZE': str(len(hosts)), 'HOROVOD_LOCAL_RANK': str(ours.index(rank)),
            'HOROVOD_LOCAL_SIZE': str(len(ours)), 'HOROVOD_HOSTNAME': name}


class Places:
    """Sets the variables by which this rank of `size` joins the runtime's world, if no launcher has set them. They stay, so that hvd.init()
    after the end of the group finds the same ranks, which share memory by now.

    turn: How many worlds there were at this store before.
    """

    def __init__(self, store, rank, size, address):
        """address: of the host of rank 0, for other hosts; None: it is not known."""
        self.turn = 0
        self._before = {}
        if size == 1:
            return
        self.turn = (store.add('hvd/worlds', 1) - 1) // size
        if 'HVD_AGENT' in os.environ:
            return
        store = dist.PrefixStore('hvd/places/{}'.format(self.turn), store)
        store.set(str(rank), json.dumps([_launcher_agrees(size), _host(), _last[0] if _last and _last[1] == rank else None]))
        if rank == 0:
            each = [self._value(store, str(number), number) for number in range(size)]
            store.set('all', json.dumps(self._summary(*zip(*each), address)))
        summary = self._value(store, 'all', 0)
        if 'refusal' in summary:
            raise RuntimeError(summary['refusal'])
        if 'hosts' in summary:
            self._set(rank, summary['variables'], summary['hosts'])

    @staticmethod
    def _value(store, key, rank):
        try:
            return json.loads(store.get(key).decode())
        except Exception as error:
            raise RuntimeError('init_process_group("hvd"): rank {} has not come to it, or ended there: {}'.format(rank, error)) from None

    @staticmethod
    def _summary(agree, hosts, jobs, address):
        """What rank 0 sends to all; {}: the launcher has sent it."""
        global _last
        if all(agree):
            return {}
        if _last is not None and _last[2] == list(hosts) and set(jobs) == {_last[0]}:
            return {'variables': _last[3], 'hosts': hosts}
        variables = {'HVD_JOB': _JOB + uuid.uuid4().hex}
        if any([host != hosts[0] for host in hosts]):
            if address is None:
                return {'refusal': 'the backend hvd cannot find the ranks on other hosts, because the store of init_process_group is no '
                                   'TCPStore; use init_method="env://" or "tcp://HOST:PORT", or start the script with hvdrun.'}
            from horovod.runner.http.http_server import RendezvousServer
            server = RendezvousServer()  # for the life of the process: its thread holds it
            variables.update({'HOROVOD_GLOO_RENDEZVOUS_ADDR': address, 'HOROVOD_GLOO_RENDEZVOUS_PORT': str(server.start())})
        return {'variables': variables, 'hosts': hosts}

    def _set(self, rank, variables, hosts):
        global _last
        for name in _STATED:
            self._before[name] = os.environ.pop(name, None)
        os.environ.update(variables, **variables_of(rank, hosts))
        _last = (variables['HVD_JOB'], rank, hosts, variables)

    def restore(self):
        """The world did not begin."""
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self._before = {}
