"""The losses of searches under way, on the twelve surfaces of test/sim/tuning_surfaces.cc under the same noise: that of --autotune
with a prediction that is right, 20 % and 50 % off, and with none; a random search; Optuna's TPE and plain expected improvement over a
Gaussian process (scikit-optimize), where the Python that runs this has optuna and skopt.

Run by itself. Every other search tries the default first. Prints for each surface the area that is lost, in windows of the best point,
mean over the seeds, and the median of what the choice is worse than the best point; a window is five steps."""
import argparse
import concurrent.futures
import math
import os
import random
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ERRORS = {"ours, right": 0, "20 % off": 0.2, "50 % off": 0.5, "no prediction": -1}


class Axis:
    def __init__(self, line):
        self.name, self.kind, *numbers = line.split()
        self.low, self.high, self.initial = (float(number) for number in numbers)


class Job:
    """A job on a surface, for a search that this process makes."""

    def __init__(self, program, surface, args, seed):
        self.process = subprocess.Popen([program, "play", surface, str(args.noise), str(args.windows), str(seed)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.windows, self.axes, self.tried = args.windows, [], []
        while (line := self.process.stdout.readline().strip()):
            self.axes.append(Axis(line))

    def say(self, verb, point):
        self.process.stdin.write(" ".join([verb, *(repr(float(value)) for value in point)]) + "\n")
        self.process.stdin.flush()
        return [float(word) for word in self.process.stdout.readline().split()]

    def score(self, point):
        """The logarithm of the score of a window with this point."""
        self.tried.append((math.log(self.say("run", point)[0]), list(point)))
        return self.tried[-1][0]

    def end(self):
        """Chooses the best that was seen; regret, lost, risked."""
        numbers = self.say("choose", max(self.tried)[1])
        self.process.stdin.close()
        if self.process.wait() != 0 or len(numbers) != 3:
            sys.exit("tuning_search.py: tuning_surface failed")
        return numbers


def random_search(job, seed):
    chance = random.Random(seed)
    job.score([axis.initial for axis in job.axes])
    for _ in range(job.windows - 1):
        job.score([math.exp(chance.uniform(math.log(axis.low), math.log(axis.high))) if axis.kind == "log"
                   else chance.randint(int(axis.low), int(axis.high)) for axis in job.axes])


def tpe(job, seed):
    import optuna  # only some machines have it
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    study.enqueue_trial({axis.name: axis.initial if axis.kind == "log" else int(axis.initial) for axis in job.axes})

    def asked(trial, axis):
        if axis.kind == "log":
            return trial.suggest_float(axis.name, axis.low, axis.high, log=True)
        if axis.kind == "integer":
            return trial.suggest_int(axis.name, int(axis.low), int(axis.high))
        return trial.suggest_categorical(axis.name, list(range(int(axis.high) + 1)))

    for _ in range(job.windows):
        trial = study.ask()
        study.tell(trial, job.score([asked(trial, axis) for axis in job.axes]))


def gp_ei(job, seed):
    import skopt  # only some machines have it
    space = [skopt.space.Real(axis.low, axis.high, prior="log-uniform") if axis.kind == "log"
             else skopt.space.Integer(int(axis.low), int(axis.high)) if axis.kind == "integer"
             else skopt.space.Categorical(list(range(int(axis.high) + 1))) for axis in job.axes]
    search = skopt.Optimizer(space, base_estimator="GP", acq_func="EI", n_initial_points=5, random_state=seed)
    point = [axis.initial if axis.kind == "log" else int(axis.initial) for axis in job.axes]
    for _ in range(job.windows):
        search.tell(point, -job.score(point))
        if len(job.tried) < job.windows:
            point = search.ask()


PEERS = {"random": (random_search, "random"), "TPE": (tpe, "optuna"), "GP-EI": (gp_ei, "skopt")}


def has(module):
    try:
        __import__(module)
    except ImportError:
        print(f"{module} is not installed: not compared", file=sys.stderr)
        return False
    return True


def cell(runs):
    risked = sum(run[2] for run in runs) / len(runs)
    return f"{statistics.mean(run[1] for run in runs):.2f}, {100 * statistics.median(run[0] for run in runs):.1f} %, {100 * risked:.0f} %"


def ours(program, surface, args, seed, error):
    said = subprocess.run([program, "tuner", surface, str(args.noise), str(args.windows), str(seed), str(error)], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    return [float(word) for word in said.split()]


def theirs(search, program, surface, args, seed):
    job = Job(program, surface, args, seed)
    search(job, seed)
    return job.end()


def runs_of(name, surface, seed, args):
    if name in ERRORS:
        return ours(args.program, surface, args, seed, ERRORS[name])
    return theirs(PEERS[name][0], args.program, surface, args, seed)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default=os.path.join(ROOT, "build", "bench", "tuning_surface"))
    parser.add_argument("--noise", type=float, default=0.05, help="standard deviation of a score (0.05)")
    parser.add_argument("--windows", type=int, default=16, help="of a search (16)")
    parser.add_argument("--seeds", type=int, default=20, help="of each surface (20)")
    parser.add_argument("--only", default="", help="surfaces whose name contains this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="searches at once (one for each core)")
    args = parser.parse_args()
    searches = [*ERRORS, *(name for name, (_, module) in PEERS.items() if has(module))]
    names = subprocess.run([args.program, "names"], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    print(f"noise {100 * args.noise:g} %, {args.windows} windows, {args.seeds} seeds: windows lost, median regret, runs with two windows in"
          " a row 10 % below the default\n")
    print("| surface |", " | ".join(searches), "|\n|---" + "|---" * len(searches) + "|")
    begun, all_runs, seeds = time.monotonic(), {name: [] for name in searches}, range(1, args.seeds + 1)
    with concurrent.futures.ProcessPoolExecutor(args.jobs) as pool:
        waits = {surface: {name: [pool.submit(runs_of, name, surface, seed, args) for seed in seeds] for name in searches}
                 for surface in names if args.only in surface}
        for surface, by_search in waits.items():
            runs = {name: [wait.result() for wait in some] for name, some in by_search.items()}
            print(f"| {surface} |", " | ".join(cell(some) for some in runs.values()), "|", flush=True)
            for name, some in runs.items():
                all_runs[name] += some
    print("| all |", " | ".join(cell(some) for some in all_runs.values()), "|")
    print(f"\n{time.monotonic() - begun:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
