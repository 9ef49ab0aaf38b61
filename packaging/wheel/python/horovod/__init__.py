"""Leads to the package that the wheel installed, for workers of hvdrun.

Their PYTHONPATH names the folder above this one, which holds `horovod` alone: the folder that holds the package itself
holds all other packages of hvdrun's environment, too, and those would come before the script's own.
"""


def _sources():
    """The folders of the package: the one that has lib/, behind the sources where the installation is editable."""
    import os
    inside = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    folders = [os.path.dirname(inside)]
    try:
        with open(os.path.join(inside, 'sources'), encoding='utf-8') as file:
            folders.insert(0, file.readline().rstrip('\n'))
    except OSError:
        pass
    return folders


__path__[:] = _sources()
del _sources
__file__ = __path__[0] + '/__init__.py'
__spec__.origin = __file__
with open(__file__, encoding='utf-8') as _source:
    _source = compile(_source.read(), __file__, 'exec')
exec(_source)  # pylint: disable=exec-used
del _source
