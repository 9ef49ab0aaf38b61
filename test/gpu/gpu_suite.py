"""The suite of horovod.torch and hvd_perf on the GPUs of this machine; what scripts/test_gpu.sh runs after hvd_gpu_check.

    gpu_suite.py --build DIR --json FILE [--part suite|perf] [--fakes]

Needs a Python with PyTorch that sees a GPU, and no pytest. A part that takes longer than --limit-s (570) has failed, and says
what it did not come to. Adds "suite", "perf", "steps", "training", "goals" and what was left out to the JSON of FILE; a goal of speed that
is missed is no failure. --smi PROGRAM is asked for the memory in use (nvidia-smi). --fakes plays the GPUs by test/fakes/gpu_libraries: a test of this script, whose figures say nothing.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
WORKERS = os.path.join(ROOT, 'test', 'python', 'workers')

# (worker, ranks): what holds for tensors of the host holds for these.
SUITE = [
    (('collectives.py',), 2), (('groups.py',), 2), (('autograd.py',), 2), (('process_sets.py',), 2), (('disagree.py',), 2),
    (('not_scattered.py',), 2), (('sync_batch_norm.py',), 2), (('join.py', 'neutral'), 2), (('join.py', 'others'), 2),
    (('duplicate.py', 'everywhere'), 2), (('duplicate.py', 'threads'), 2),
]
KILLED = ('small', 'large', 'peer')
# For correctness only: NCCL takes the ranks for ranks of different hosts, and their kernels take turns of milliseconds.
ON_ONE_GPU = 'nccl on one GPU'
AS_DIFFERENT_HOSTS = ['bash', '-c', 'NCCL_HOSTID=rank$HOROVOD_RANK exec "$0" "$@"']
MOST_LEFT_MIB = 16  # other programs, as a desktop, take and give back a little


class Machine(object):
    def __init__(self, options):
        self.options = options
        self.results = []
        self.left_out = []
        env = dict(os.environ)
        env['PYTHONPATH'] = os.pathsep.join([os.path.join(ROOT, 'runtime', 'python'), env.get('PYTHONPATH', '')])
        env['HVD_RUNTIME'] = os.path.join(options.build, 'lib', 'libhvd.so')
        if options.fakes:
            libraries = os.path.join(options.build, 'test', 'gpu_libraries')
            env['LD_LIBRARY_PATH'] = os.pathsep.join([libraries, env.get('LD_LIBRARY_PATH', '')])
        self.env = env
        self.gpus = self.count_gpus()
        self.end = time.monotonic() + options.limit_s

    def count_gpus(self):
        if self.options.fakes:
            return 2
        try:
            import torch
            return torch.cuda.device_count()
        except ImportError:
            return 0

    def leave_out(self, what, why):
        print('left out: {}, because {}'.format(what, why), flush=True)
        if {'what': what, 'why': why} not in self.left_out:
            self.left_out.append({'what': what, 'why': why})

    def used_mib(self):
        """Memory in use on all GPUs; None where nobody tells it."""
        try:
            text = subprocess.run([self.options.smi, '--query-gpu=memory.used', '--format=csv,noheader,nounits'],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=30, universal_newlines=True).stdout
            return sum(int(line) for line in text.splitlines())
        except (OSError, ValueError, subprocess.TimeoutExpired):
            return None

    def note_memory(self, before):
        """That the job of the last result has left none; the driver takes back what a killed process had within seconds."""
        if before is None:
            return self.leave_out('GPU memory that killed ranks leave', '{} does not tell it'.format(self.options.smi))
        for _ in range(20):
            left = (self.used_mib() or 0) - before
            if left <= MOST_LEFT_MIB:
                break
            time.sleep(0.5)
        result = self.results[-1]
        result['memory_left_mib'] = max(left, 0)
        if left > MOST_LEFT_MIB:
            result['ok'] = False
            print('FAILED {}: {} MiB of GPU memory are left'.format(result['name'], left), flush=True)

    def job(self, ranks, command, timeout_s, **extra):
        timeout_s = min(timeout_s, self.end - time.monotonic())
        if timeout_s <= 0:
            return -1, 'NOT BEGUN: the time of this part is up'
        full = [os.path.join(self.options.build, 'bin', 'hvdrun'), '-np', str(ranks)] + command
        try:
            done = subprocess.run(full, env=dict(self.env, **extra), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  stdin=subprocess.DEVNULL, timeout=timeout_s, universal_newlines=True)
            return done.returncode, done.stdout
        except subprocess.TimeoutExpired as late:
            output = late.stdout or b''
            return -1, (output.decode('utf-8', 'replace') if isinstance(output, bytes) else output) + '\nTIME IS UP'

    def worker(self, script, moved, way):
        """The command of a worker; `moved`: one that is written for tensors of the host."""
        before = AS_DIFFERENT_HOSTS if way == ON_ONE_GPU else []
        runner = []
        if self.options.fakes:
            runner = [os.path.join(WORKERS, 'on_fake_gpus.py')]
        elif moved:
            runner = [os.path.join(WORKERS, 'on_gpus.py')]
        return before + [sys.executable] + runner + [os.path.join(WORKERS, script[0])] + list(script[1:])

    def note(self, name, ranks, way, good, seconds, output):
        print('{} {} with {} ranks, {}, {:.1f} s'.format('ok    ' if good else 'FAILED', name, ranks, way, seconds), flush=True)
        if not good:
            print(output[-4000:], flush=True)
        self.results.append({'name': name, 'ranks': ranks, 'way': way, 'ok': good, 'seconds': round(seconds, 2)})

    def run(self, script, ranks, way, moved=True, **extra):
        started = time.monotonic()
        if script[0] == 'gpu.py':
            extra['HOROVOD_DYNAMIC_PROCESS_SETS'] = '1'
        code, output = self.job(ranks, self.worker(script, moved, way), 120, **extra)
        good = code == 0 and output.count('ok') >= ranks
        self.note(' '.join(script), ranks, way, good, time.monotonic() - started, output)

    def kill(self, mode, ranks, way, **extra):
        """kill -9 of a rank inside of a collective: the others have an error within a second of it, and no memory is left."""
        before = self.used_mib()
        with tempfile.TemporaryDirectory() as folder:
            started = time.monotonic()
            path = os.path.join(folder, 'answer')
            code, output = self.job(ranks, self.worker(('killed.py', path, mode, 'token'), True, way), 60, **extra)
            good, slowest = code != 0, 0.0
            for rank in range(ranks - 1):
                try:
                    with open('{}.{}'.format(path, rank)) as file:
                        seconds, error = file.read().splitlines()[:2]
                except OSError:
                    good, output = False, output + '\nno answer of rank {}'.format(rank)
                    continue
                slowest = max(slowest, float(seconds))
                good = good and error.startswith('HorovodInternalError: rank {}'.format(ranks - 1)) and slowest <= 1.0
                output += '\n' + error
            self.note('killed.py ' + mode, ranks, way, good, time.monotonic() - started, output)
            self.results[-1]['seconds_to_the_error'] = slowest
        self.note_memory(before)

    def elastic(self, ranks, way, **extra):
        """kill -9 of a rank to the first collective of the world without it."""
        with tempfile.TemporaryDirectory() as folder:
            started = time.monotonic()
            command = ['--min-np', str(ranks - 1)] + self.worker(('gpu_elastic.py', folder), False, way)
            code, output = self.job(ranks, command, 90, **extra)
            seconds = []
            for name in os.listdir(folder):
                if name.startswith('went_on.'):
                    with open(os.path.join(folder, name)) as file:
                        seconds.append(float(file.read()))
            good = code == 0 and len(seconds) == ranks - 1 and max(seconds) <= 1.0
            self.note('gpu_elastic.py', ranks, way, good, time.monotonic() - started, output)
            self.results[-1]['seconds_to_a_usable_world'] = max(seconds) if seconds else None


def first_if(short, rows):
    return rows[:1] if short else rows


def run_suite(machine):
    ways = [('staged', {'HOROVOD_GPU_STAGED': '1'})]
    if machine.gpus > 1:
        ways.append(('nccl', {}))
    else:
        machine.leave_out('NCCL between GPUs', 'this machine has one')
        ways.append((ON_ONE_GPU, {}))
    machine.run(('gpu.py', 'staged', '2'), 1, 'alone', moved=False)
    machine.run(('gpu_training.py', 'none'), 1, 'alone', moved=False)
    for way, extra in ways:
        carrier = 'staged' if way == 'staged' else 'nccl'
        machine.run(('gpu.py', carrier, '3'), 2, way, moved=False, **extra)
        for how in first_if(machine.options.short, ('none', 'fp16', 'bf16', 'buckets')):
            machine.run(('gpu_training.py', how), 2, way, moved=False, **extra)
        for script, ranks in first_if(machine.options.short, SUITE):
            machine.run(script, ranks, way, **extra)
        if machine.gpus > 3 and way == 'nccl':
            machine.run(('gpu_devices.py', carrier), 2, way, moved=False, HOROVOD_DYNAMIC_PROCESS_SETS='1', **extra)
        for mode in first_if(machine.options.short, KILLED):
            machine.kill(mode, 2, way, **extra)
        machine.elastic(2, way, **extra)


def rows_of(output, key):
    """The objects of JSON in a job's output, behind the prefixes of its ranks, whose first key is this."""
    begin = '{{"{}"'.format(key)
    return [json.loads(line[line.index(begin):]) for line in output.splitlines() if begin in line]


def folder_of_nccl():
    """Of the NCCL that PyTorch's wheel brings: hvd_perf has no PyTorch that would load it. None where there is none."""
    try:
        import nvidia.nccl
    except ImportError:
        return None
    return os.path.join(list(nvidia.nccl.__path__)[0], 'lib')


def perf_jobs(machine):
    """(ranks, way, command before the program, options of single allreduces, those of steps)."""
    if machine.options.fakes:
        sizes = ['--sizes', '8,65536', '--loops', '1']
        steps = ['--steps', 'small', '--loops', '1', '--most-rounds', '1']
    else:
        sizes, steps = [], ['--steps', 'ResNet-50,GPT-2,small']
    jobs = [(1, 'alone', [], sizes, steps)]
    if machine.gpus == 1:  # only the time of the processor counts
        few = ['--loops', '3', '--most-rounds', '1000', '--sizes', '8,65536']
        jobs.append((2, ON_ONE_GPU, AS_DIFFERENT_HOSTS, few, ['--loops', '2', '--steps', 'small']))
    if machine.gpus > 1:
        jobs.append((2, 'nccl', [], sizes, steps))
    if machine.gpus > 2:
        jobs.append((machine.gpus, 'nccl', [], sizes, steps))
    return jobs


def run_perf(machine):
    """Rows of single allreduces, and of steps."""
    found = {'collective': [], 'step': []}
    extra = {}
    nccl = folder_of_nccl()
    if nccl and not machine.options.fakes:
        extra['LD_LIBRARY_PATH'] = os.pathsep.join([machine.env.get('LD_LIBRARY_PATH', ''), nccl]).strip(os.pathsep)
    perf = [os.path.join(machine.options.build, 'bin', 'hvd_perf'), '--device', 'cuda']
    for ranks, way, before, sizes, steps in perf_jobs(machine):
        for key, more in (('collective', ['--json'] + sizes), ('step', steps)):
            code, output = machine.job(ranks, before + perf + more, 300, **extra)
            found[key] += [dict(row, way=way) for row in rows_of(output, key)]
            if code != 0:
                machine.note('hvd_perf, ' + key, ranks, way, False, 0, output)
    for row in found['collective'] + found['step']:
        print(row, flush=True)
    return found['collective'], found['step']


def run_training(machine):
    """Rows of steps of ResNet-50: alone, with hvdrun's optimizer, and with DDP."""
    if machine.options.fakes:
        machine.leave_out('steps of ResNet-50', 'GPUs that are played cannot train it')
        return []
    if importlib.util.find_spec('torchvision') is None:
        machine.leave_out('steps of ResNet-50', '{} has no torchvision'.format(sys.executable))
        return []
    jobs = [('plain', 1, 128), ('hvd', 1, 128), ('ddp-nccl', 1, 128)]
    if machine.gpus == 1:
        jobs += [('hvd', 2, 32), ('ddp-gloo', 2, 32)]
    else:
        jobs += [('hvd', machine.gpus, 128), ('ddp-nccl', machine.gpus, 128)]
    rows = []
    for way, ranks, batch in jobs:
        command = [sys.executable, os.path.join(HERE, 'training_step.py'), way, str(batch)]
        code, output = machine.job(ranks, command, 100)
        rows += rows_of(output, 'training')
        if code != 0:
            machine.note('training_step.py ' + way, ranks, 'perf', False, 0, output)
    for row in rows:
        print(row, flush=True)
    return rows


def goals(summary):
    """The goals of speed that this machine can show: the limit, the value, whether it is met."""
    found = []

    def add(goal, limit, value, met):
        found.append({'goal': goal, 'limit': limit, 'value': round(value, 3), 'met': met})
    shares = summary.get('share_of_memory_bandwidth', {})
    for name in sorted(shares):
        add('share of the memory\'s bandwidth: ' + name, 0.85, shares[name], shares[name] >= 0.85)
    for row in summary.get('perf', []):
        if row['by_nccl'] and 'nccl_us' in row and row['bytes'] <= 65536:
            value = row['host_us'] - row['nccl_host_us']
            add('us of the host over raw NCCL, {ranks} ranks, {bytes} bytes'.format(**row), 2, value, value <= 2)
    for row in summary.get('steps', []):
        if row['by_nccl'] and 'nccl_us' in row and row['way'] != ON_ONE_GPU:
            add('step of {step}, {ranks} ranks, over raw NCCL'.format(**row), 1.02, row['us'] / row['nccl_us'],
                row['us'] <= 1.02 * row['nccl_us'])
            add('{step}, {ranks} ranks: pack + call + unpack over un-packed'.format(**row), 1.2,
                row['nccl_packed_us'] / row['nccl_us'], row['nccl_packed_us'] >= 1.2 * row['nccl_us'])
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', required=True)
    parser.add_argument('--json', required=True)
    parser.add_argument('--part', choices=['suite', 'perf'])
    parser.add_argument('--fakes', action='store_true')
    parser.add_argument('--short', action='store_true', help='the first of each kind: enough to test this script')
    parser.add_argument('--smi', default='nvidia-smi')
    parser.add_argument('--limit-s', type=float, default=570)
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    machine = Machine(options)
    perf, steps, training = [], [], []
    if machine.gpus == 0:
        machine.leave_out('tensors of PyTorch on GPUs', 'the PyTorch of {} sees none'.format(sys.executable))
    elif not os.path.exists(os.path.join(options.build, 'bin', 'hvdrun')):
        machine.leave_out('tensors of PyTorch on GPUs', 'this build has no bin/hvdrun')
    else:
        if options.part != 'perf':
            run_suite(machine)
        if options.part != 'suite':
            perf, steps = run_perf(machine)
            training = run_training(machine)
    summary = {}
    if os.path.exists(options.json):
        with open(options.json) as file:
            summary = json.load(file)
    summary['suite'] = summary.get('suite', []) + machine.results
    summary['perf'] = perf or summary.get('perf', [])
    summary['steps'] = steps or summary.get('steps', [])
    summary['training'] = training or summary.get('training', [])
    summary['goals'] = goals(summary)
    summary['suite_left_out'] = machine.left_out
    with open(options.json, 'w') as file:
        json.dump(summary, file, indent=1)
    failed = [r for r in machine.results if not r['ok']]
    failed += [r for r in perf + steps if not r['correct']]
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
