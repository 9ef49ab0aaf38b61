"""Pods of manifests, on the hosts of a host_rig: the files of the image, its user without any capability, the volumes that the manifest
mounts, the names of the cluster, and the container's command as the first process. What controllers add, the tests say.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys

import yaml

from conftest import children_of, hvdrun_path, is_alive, wait_until

REPO = pathlib.Path(__file__).resolve().parents[2]
STUB = pathlib.Path(__file__).with_name("dns_stub.py")
GROUP = 1000  # fsGroup
DOMAIN = "default.svc.cluster.local"

# What docker/Dockerfile makes of a root, from the one of this machine; then the container's command, as runtimes start it.
IMAGE = """
set -e
root=$1 files=$2 repo=$3 name=$4
hostname "$name"
mount -t tmpfs none "$root"
cp -P /bin /lib* /sbin "$root"
for folder in usr dev sys; do mkdir "$root/$folder" && mount --rbind "/$folder" "$root/$folder"; done
mkdir -p "$root/proc" "$root/opt/hvdrun/bin" "$root/home/hvdrun" "$root/run/sshd" "$root/root" "$root$repo" "$root/examples"
mount -t proc proc "$root/proc"
mkdir -m 1777 "$root/tmp" && mkdir -p "$root$repo"
mount --bind "$repo" "$root$repo"
mount --bind "$repo/examples" "$root/examples"
ln -s "$5" "$root/opt/hvdrun/bin/hvdrun"
ln -s "$repo/docker/hvdrun-worker" "$root/opt/hvdrun/bin/hvdrun-worker"
chown 1000:1000 "$root/home/hvdrun"
cp -a /etc "$root/etc"
sed -i -e '/^[^:]*:[^:]*:1000:/d' -e '$ahvdrun:x:1000:1000::/home/hvdrun:/bin/bash' "$root/etc/passwd"
rm "$root/etc/ssh/ssh_config" && echo "Include /etc/ssh/ssh_config.d/*.conf" >"$root/etc/ssh/ssh_config"  # Debian's
cp "$repo/docker/ssh_config" "$root/etc/ssh/ssh_config.d/hvdrun.conf"
for file in hosts resolv.conf nsswitch.conf; do rm -f "$root/etc/$file" && cp "$files/$file" "$root/etc/$file"; done
shift 5
while [ "$1" != -- ]; do  # FROM TO rw|ro
  mkdir -p "$root$2"
  if [ "$1" = memory ]; then mount -t tmpfs -o mode=1777 none "$root$2"; else mount --bind "$1" "$root$2"; fi
  [ "$3" = rw ] || mount -o remount,bind,ro "$root$2"
  shift 3
done
shift
exec chroot "$root" setpriv --reuid 1000 --regid 1000 --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all \\
  env -i --chdir=/home/hvdrun "$@"
"""


def objects_of(name):
    return [object for object in yaml.safe_load_all((REPO / "examples/kubernetes" / name).read_text()) if object]


class Volume:
    """A ConfigMap or a Secret as kubelet mounts it: root's, behind two links, and a new version is a new folder."""

    def __init__(self, folder, mode=0o644):
        self.folder, self.mode, self.versions = folder, mode, 0
        folder.mkdir(parents=True)
        folder.chmod(0o755)

    def write(self, files, mode=None):
        self.versions += 1
        version = self.folder / f"..{self.versions}"
        version.mkdir()
        version.chmod(0o755)
        for name, text in files.items():
            (version / name).write_text(text)
            (version / name).chmod(mode or self.mode)
            os.chown(version / name, 0, GROUP)
            if not (self.folder / name).is_symlink():
                (self.folder / name).symlink_to(f"..data/{name}")
        (self.folder / "..data_tmp").symlink_to(version.name)
        (self.folder / "..data_tmp").rename(self.folder / "..data")
        if self.versions > 1:
            shutil.rmtree(self.folder / f"..{self.versions - 1}")


class Pod:
    """Its first process is the container's command, with the signals of a first process."""

    def __init__(self, cluster, number, name, spec, container, environment, volumes, mounts):
        rig, self.name = cluster.rig, name
        files = cluster.new_folder(name)
        (files / "root").mkdir()
        (files / "hosts").write_text(f"127.0.0.1 localhost\n{rig.address(number)} {name}\n")
        (files / "resolv.conf").write_text(f"nameserver {rig.address(0)}\nsearch {DOMAIN} svc.cluster.local cluster.local\n"
                                           "options ndots:5 timeout:2 attempts:1\n")
        (files / "nsswitch.conf").write_text("passwd: files\nhosts: files dns\n")
        of_name = {volume["name"]: volume for volume in spec.get("volumes", [])}
        all_mounts = [("memory" if "emptyDir" in of_name[mount["name"]] else volumes[mount["name"]], mount["mountPath"],
                       "ro" if mount.get("readOnly") else "rw") for mount in container.get("volumeMounts", [])]
        all_mounts += [(folder, path, "ro") for folder, path in mounts]
        settings = {"PATH": "/opt/hvdrun/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/home/hvdrun", "HOSTNAME": name,
                    "KUBERNETES_SERVICE_HOST": "10.96.0.1", **environment,
                    **{entry["name"]: entry["value"] for entry in container.get("env", [])}}
        self.out, self.err = files / "out", files / "err"
        place = rig.head.pid if number == 0 else rig.hosts[number - 1].init
        self.process = subprocess.Popen(
            [str(word) for word in (
                "nsenter", "-t", place, "-n", "-m", "-u", "-i", "--", "unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child",
                "sh", "-c", IMAGE, "pod", files / "root", files, REPO, name, pathlib.Path(hvdrun_path()).resolve(),
                *(word for mount in all_mounts for word in mount), "--", *(f"{key}={value}" for key, value in settings.items()),
                *container.get("command", []), *container.get("args", []))],
            stdin=subprocess.DEVNULL, stdout=self.out.open("w"), stderr=self.err.open("w"))

    def said(self):
        return f"--- {self.name}: {self.process.poll()}\n{self.out.read_text()}{self.err.read_text()}"

    def first(self):
        return children_of(self.process.pid)[0]

    def finish(self, limit):
        """Its exit code."""
        return self.process.wait(limit)

    def delete(self):
        """As Kubernetes begins to."""
        os.kill(self.first(), signal.SIGTERM)

    def lose(self):
        """With all that runs in it, at once."""
        first = self.first()
        os.kill(first, signal.SIGKILL)  # with its namespace
        wait_until("the end of all that ran in it", lambda: not is_alive(first))
        self.process.wait()

    def listens(self, port):
        probe = f"exec 3<>/dev/tcp/127.0.0.1/{port}"
        return subprocess.run(["nsenter", "-t", str(self.process.pid), "-n", "--", "bash", "-c", probe], capture_output=True).returncode == 0


class Cluster:
    """`names`: {name below DOMAIN: number of the host}, which the name server of the cluster knows once they were asked for so many
    seconds ago."""

    def __init__(self, rig, folder, names, late=0):
        self.rig, self.folder, self.pods = rig, folder, []
        self.stub = rig.spawn(sys.executable, str(STUB), rig.address(0), str(folder), str(late),
                              *(f"{name}.{DOMAIN}={rig.address(number)}" for name, number in names.items()))
        wait_until("the name server", lambda: (folder / "questions").exists())

    def new_folder(self, name):
        folder = self.folder / f"{len(self.pods)}-{name}"
        folder.mkdir()
        return folder

    def start(self, number, name, spec, container=None, environment=(), volumes=(), mounts=()):
        """On host `number`, 0 for the head."""
        self.pods.append(Pod(self, number, name, spec, container or spec["containers"][0], dict(environment), dict(volumes), mounts))
        return self.pods[-1]

    def said(self):
        return "\n".join(pod.said() for pod in self.pods)

    def down(self):
        for pod in self.pods:
            if pod.process.poll() is None:
                pod.lose()
        self.stub.kill()
        self.stub.wait()
