"""The programs hvdrun and horovodrun of the wheel for systems without the runtime, such as macOS and Windows.

They run one process, as `hvdrun -np 1` does, and say in a sentence what they cannot do.
"""

import subprocess
import sys

_USAGE = 'usage: hvdrun [-np 1] COMMAND [ARGUMENT ...]'


def _split(arguments):
    """(number of processes as text, the command) of an argument list; the command is None if an option is another one."""
    count = '1'
    while arguments:
        argument = arguments.pop(0)
        if argument == '--':
            return count, arguments
        name, has_value, value = argument.partition('=')
        if name in ('-np', '-n', '--np', '--num-proc') and (has_value or arguments):
            count = value if has_value else arguments.pop(0)
        elif argument.startswith('-'):
            return count, None
        else:
            return count, [argument] + arguments
    return count, []


def main(argv=None):
    """Runs the command line of hvdrun.

    Args:
        argv: The arguments as a list; None: those of this process.

    Returns: The exit code: that of the command, or 2 for a use that needs Linux.
    """
    from horovod.common import _alone
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments in (['--version'], ['version']):
        from importlib.metadata import version
        print('hvdrun {} (a world of one)'.format(version('hvdrun')))
        return 0
    if arguments in ([], ['--help'], ['-h'], ['help']):
        print(_USAGE + '\n' + _alone.sentence())
        return 0 if arguments else 2
    count, command = _split(arguments)
    if count != '1' or not command:
        print('hvdrun: {}\n{}'.format(_alone.sentence(), _USAGE), file=sys.stderr)
        return 2
    try:
        code = subprocess.call(command)
    except OSError as error:
        print('hvdrun: {} cannot be started: {}'.format(command[0], error), file=sys.stderr)
        return 127 if isinstance(error, FileNotFoundError) else 126
    return code if code >= 0 else 128 - code


if __name__ == '__main__':
    sys.exit(main())
