"""Hosts that are network namespaces (test/system/host_rig.py) with links of a chosen rate, delay, loss and limit for each flow, by
the switch of link_shaper.cc. Needs root."""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test" / "system"))

try:
    from host_rig import WHY_NOT, HostRig  # noqa: E402
except ImportError as error:  # it needs pytest
    WHY_NOT, HostRig = f"the rig of hosts cannot be imported: {error}", None

# Name -> words of link_shaper, congestion control (those that every kernel lets a namespace choose); delays are one way.
LINKS = {
    "1 Gbit/s, 0.1 ms": (["--rate-mbit", 1000, "--delay-us", 100], "bbr"),
    "1 Gbit/s, 5 ms": (["--rate-mbit", 1000, "--delay-us", 5000], "bbr"),
    "1 Gbit/s, 5 ms, Reno": (["--rate-mbit", 1000, "--delay-us", 5000], "reno"),
    "1 Gbit/s, 1 ms, 0.01 % lost, Reno": (["--rate-mbit", 1000, "--delay-us", 1000, "--loss", 0.0001], "reno"),
    "1 Gbit/s, 0.25 for a flow, 1 ms": (["--rate-mbit", 1000, "--flow-mbit", 250, "--delay-us", 1000], "bbr"),
}


class ShapedHosts:
    """`count` hosts whose links to each other are shaped; the way from hvdrun to them is not."""

    def __init__(self, folder, count, build):
        self.count, self.shaper, self.switch = count, None, build / "bench" / "link_shaper"
        self.rig = HostRig(folder, count)

    def shape(self, link):
        words, control = LINKS[link]
        self.unshape()
        names = [f"sh{number}" for number in range(self.count + 1)]
        self.shaper = self.rig.spawn(str(self.switch), *map(str, words), *names, stdout=subprocess.PIPE)
        if self.shaper.stdout.readline() != b"ready\n":
            raise OSError("link_shaper did not start: it needs /dev/net/tun")
        self.rig.ip("link set sh0 master hvdbr up")
        for host in self.rig.hosts:
            number = host.number
            self.rig.ip(f"link add sbr{number} type bridge forward_delay 0", f"link set sbr{number} up",
                        f"link set sh{number} master sbr{number} up", f"link set vh{number} master sbr{number}")
            # A frame is lost as a whole: with losses it is small.
            size = 16384 if "--loss" in words else 65536
            host.ip(f"link set eth0 gso_max_size {size}")
            host.run("sysctl", "-qw", f"net.ipv4.tcp_congestion_control={control}")

    def unshape(self):
        if self.shaper is None:
            return
        for host in self.rig.hosts:
            self.rig.ip(f"link set vh{host.number} master hvdbr", f"link del sbr{host.number}")
        self.shaper.kill()
        self.shaper.wait()
        self.shaper = None

    def down(self):
        self.rig.down()
