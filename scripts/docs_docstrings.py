"""Docstrings as Markdown for the site: `Returns: text` in bold, and what stands below `Example:` as a block of Python."""
import re

import griffe


def markdown(text):
    text = re.sub(r'^Returns: ', '**Returns** ', text, flags=re.M)

    def block(found):
        lines = [line[4:] for line in found.group(1).rstrip('\n').split('\n')]
        return '**Example**\n\n```python\n' + '\n'.join(lines) + '\n```\n'

    return re.sub(r'^Example:\n((?:    .*\n?|\n)+)', block, text, flags=re.M)


class Docstrings(griffe.Extension):
    """Changes each docstring when its object is read."""

    def on_object(self, *, obj, **kwargs):
        if obj.docstring:
            obj.docstring.value = markdown(obj.docstring.value)
