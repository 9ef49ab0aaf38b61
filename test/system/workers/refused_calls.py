"""refused_calls.py ERRNO call,call,... -- command: runs it under a seccomp filter that answers these system calls with an
error, as those of containers do. Linux on x86-64."""

import ctypes
import errno
import os
import struct
import sys

NUMBERS = {"ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "getrandom": 318, "memfd_create": 319, "membarrier": 324,
           "copy_file_range": 326, "statx": 332, "io_pgetevents": 333, "rseq": 334, "pidfd_send_signal": 424,
           "io_uring_setup": 425, "pidfd_open": 434, "clone3": 435, "close_range": 436, "openat2": 437,
           "pidfd_getfd": 438, "faccessat2": 439, "process_madvise": 440, "epoll_pwait2": 441, "futex_waitv": 449,
           "set_mempolicy_home_node": 450, "fchmodat2": 452}
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD_NUMBER, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06  # BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_RET|K
ALLOW, ERROR = 0x7FFF0000, 0x00050000


def program(calls, error):
    """Loads the number of the call; each comparison falls through to the next or to its own return."""
    steps = [(LOAD_NUMBER, 0, 0, 0)]
    for call in calls:
        steps += [(JUMP_IF_EQUAL, 0, 1, NUMBERS[call]), (RETURN, 0, 0, ERROR | error)]
    steps.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("HBBI", *step) for step in steps), len(steps)


def refuse(calls, error):
    code, length = program(calls, error)
    memory = ctypes.create_string_buffer(code)
    filter_ = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", length, ctypes.addressof(memory)))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in ((PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter_, 0, 0)):
        if libc.prctl(*arguments) != 0:
            sys.exit("no seccomp filter can be installed: " + os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    refuse(sys.argv[2].split(","), getattr(errno, sys.argv[1]))
    os.execvp(sys.argv[4], sys.argv[4:])
