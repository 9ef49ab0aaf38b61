"""How long the parts of the benchmark may take, so that all of it ends within its minutes."""
import time


class Budget:
    """Each part gets its share of the time that is left; unused time goes to those after it. A part looks at
    its deadline between rounds and does one in any case, so on a busy machine the whole takes somewhat longer."""

    def __init__(self, weights, minutes, now=time.monotonic):
        self.left = dict(weights)  # of the parts still to come
        self.now = now
        self.end = now() + 60 * minutes

    def parts(self):
        return list(self.left)

    def over(self):
        return self.now() > self.end

    def until(self, part):
        """To be called when the part begins: when it should end."""
        share = self.left[part] / sum(self.left.values())
        del self.left[part]
        return self.now() + max(0.0, self.end - self.now()) * share


def there_and_back(names, runs, until):
    """A B C C B A, so often that each comes `runs` times, after one of each to warm up: (name, number of its run; None
    to warm up). Ends earlier after `until`, each having come equally often, once at least."""
    order = [*names, *reversed(names)]
    for name in names:
        yield name, None
    for run in range(runs * len(names)):
        if run >= len(names) and run % len(names) == 0 and time.monotonic() > until:
            return
        yield order[run % len(order)], run // len(names)
