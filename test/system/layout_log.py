"""The log of the ranks of workers/layout_training.py: which world made each step, with which samples and result."""

import collections

SAMPLES = 90  # as in the worker


class LayoutLog:
    def __init__(self, folder):
        self.begun = collections.defaultdict(dict)  # generation -> {rank: (host, size, step)}
        self.taken = collections.defaultdict(list)  # (step, generation) -> [samples of a rank, ...]
        self.done = collections.defaultdict(set)  # (step, generation) -> {"LOSS DIGEST"}
        for path in sorted(folder.iterdir()):
            for line in path.read_text().splitlines(keepends=True):
                if line.endswith("\n"):  # else it was killed while it wrote
                    self._read(*line.split())

    def _read(self, kind, *words):
        if kind == "begin":
            generation, rank, size, host, step = words
            self.begun[int(generation)][int(rank)] = (host, int(size), int(step))
        elif kind == "take":
            step, generation, *samples = map(int, words)
            self.taken[step, generation].append(samples)
        else:
            step, generation, *result = words
            self.done[int(step), int(generation)].add(" ".join(result))

    def made_by(self):
        """{step: the generation whose result counts}. A step that was made again counts as it was made last."""
        made = {}
        for step, generation in self.done:
            made[step] = max(generation, made.get(step, 0))
        return made

    def layout(self, generation):
        """How many ranks on each of its hosts, in the order of ranks."""
        ranks = self.begun[generation]
        hosts = [ranks[rank][0] for rank in sorted(ranks)]
        assert sorted(ranks) == list(range(ranks[0][1])), (generation, ranks)
        assert all(size == len(ranks) for _, size, _ in ranks.values()), (generation, ranks)
        in_a_row = sum(a != b for a, b in zip(hosts, [None, *hosts]))
        assert len(set(hosts)) == in_a_row, f"the ranks of a host are not in a row: {hosts}"
        return tuple(collections.Counter(hosts).values())

    def schedule(self):
        """[(steps, layout), ...]: the worlds that made all steps."""
        made, parts = self.made_by(), []
        assert sorted(made) == list(range(len(made))), "each step was made"
        last = None
        for step in range(len(made)):
            if made[step] == last:
                parts[-1][0] += 1
            else:
                last = made[step]
                parts.append([1, self.layout(last)])
        return [(steps, layout) for steps, layout in parts]

    def results(self):
        """[LOSS DIGEST of each step]; the ranks of a world have the same bits."""
        found = []
        for step, generation in sorted(self.made_by().items()):
            results = self.done[step, generation]
            assert len(results) == 1, f"step {step} of generation {generation}: {results}"
            found.extend(results)
        return found

    def repeats(self):
        """{generation: (steps, begun)}: how many steps it made again that some rank had made in an earlier one, and how
        many that some rank had at least begun."""
        repeated, made, begun = {}, -1, -1
        for generation in sorted(self.begun):
            steps = {step for step, when in self.done if when == generation}
            assert not steps or min(steps) <= made + 1, f"generation {generation} left out step {made + 1}"
            repeated[generation] = sum(step <= made for step in steps), sum(step <= begun for step in steps)
            made = max([made, *steps])
            begun = max([begun, *(step for step, when in self.taken if when == generation)])
        return repeated

    def check_samples(self):
        """In each epoch every sample is taken once; only the last step of an epoch may fill up with others."""
        made = self.made_by()
        seen = collections.Counter()
        for step in range(len(made)):
            size = len(self.begun[made[step]])
            shares = self.taken[step, made[step]]
            assert len(shares) == size, f"step {step} of generation {made[step]}: {len(shares)} of {size} ranks"
            samples = [sample for share in shares for sample in share]
            fresh = {sample for sample in samples if not seen[sample]}
            left = SAMPLES - len(seen)
            assert len(fresh) == min(len(samples), left), f"step {step} took {samples} after {dict(seen)}"
            assert len(samples) - len(fresh) < size, f"step {step} was filled up with more than it has ranks"
            seen.update(samples)
            if len(seen) == SAMPLES:
                seen.clear()
