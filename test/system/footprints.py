"""Memory and descriptors of processes while something happens to their job: how much each grew while it lived."""

import os

from conftest import read_proc


def memory_kb(pid):
    """Resident memory, shared pages included."""
    pages = read_proc(pid, "statm").split()
    return int(pages[1]) * os.sysconf("SC_PAGE_SIZE") // 1024 if pages else None


def descriptors(pid):
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return None


class Footprints:
    def __init__(self):
        self.looks = {}  # (what, pid) -> [(moment, kB, descriptors), ...]

    def look(self, moment, what, pid):
        found = memory_kb(pid), descriptors(pid)
        if None not in found:
            self.looks.setdefault((what, pid), []).append((moment, *found))

    def growth(self, settled):
        """{what: (lives of at least `settled` moments, most growth in kB, most growth in descriptors, most of each)}:
        from the first look after it was settled to the last."""
        grown = {}
        for (what, _), looks in self.looks.items():
            later = [look for look in looks if look[0] >= looks[0][0] + settled]
            if len(later) < 2:
                continue
            (_, kb, fds), (_, last_kb, last_fds) = later[0], later[-1]
            lives, *most = grown.get(what, (0, -10**9, -10**9, 0, 0))
            grown[what] = (lives + 1, *map(max, most, (last_kb - kb, last_fds - fds, last_kb, last_fds)))
        return grown
