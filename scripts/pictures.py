#!/usr/bin/env python3
"""Makes docs/pictures/*.svg from the texts beside them, legible in light and dark mode.

    scripts/pictures.py            write the pictures
    scripts/pictures.py --check    exit with 1 when one is not up to date

A text has one element a line; lengths are in units of 16 pixels, # begins a comment:

    size WIDTH HEIGHT
    frame X Y WIDTH HEIGHT TITLE          a group of boxes
    box NAME X Y WIDTH HEIGHT TITLE [| SMALL TEXT]
    arrow FROM TO [TEXT]                  from one box to another
    both FROM TO [TEXT]                   with two heads
    label X Y TEXT
"""

import argparse
import pathlib
import sys
import textwrap
from xml.sax.saxutils import escape

FOLDER = pathlib.Path(__file__).resolve().parents[1] / 'docs' / 'pictures'
UNIT = 16
MARGIN = 10

LIGHT = {'ink': '#1f2328', 'soft': '#59636e', 'paper': '#ffffff', 'box': '#eef4fb', 'edge': '#3b6ea5', 'frame': '#8c959f'}
DARK = {'ink': '#f0f6fc', 'soft': '#a9b4c0', 'paper': '#0d1117', 'box': '#16263a', 'edge': '#79b8ff', 'frame': '#6e7781'}
COLOURS = """.paper { fill: %(paper)s }
text { fill: %(ink)s } .small, .title { fill: %(soft)s } .halo { stroke: %(paper)s; fill: %(paper)s }
.box { fill: %(box)s; stroke: %(edge)s } .frame { stroke: %(frame)s } .line { stroke: %(ink)s } .head { fill: %(ink)s }
"""
STYLE = """
text { font-family: sans-serif; font-size: 13px; text-anchor: middle }
.small, .on-line { font-size: 11px } .title { text-anchor: start } .halo { stroke-width: 6px }
.box, .line { stroke-width: 1.5 } .frame { fill: none; stroke-dasharray: 5 4 }
""" + COLOURS % LIGHT + '@media (prefers-color-scheme: dark) {\n' + COLOURS % DARK + '}\n'


class Picture:
    """One text, read line by line into boxes, and drawn."""

    def __init__(self, text):
        self.boxes = {}
        self.size = (0, 0)
        self.under, self.lines, self.over = [], [], []
        for number, line in enumerate(text.splitlines(), 1):
            words = line.split()
            if not words or words[0].startswith('#'):
                continue
            draw = getattr(self, '_' + words[0], None)
            if draw is None:
                raise ValueError('line {}: {!r} is not an element'.format(number, words[0]))
            draw(words[1:])

    def _size(self, words):
        self.size = (float(words[0]) * UNIT, float(words[1]) * UNIT)

    def _frame(self, words):
        x, y, width, height = (float(word) * UNIT for word in words[:4])
        self.under.append('<rect class="frame" x="{:g}" y="{:g}" width="{:g}" height="{:g}" rx="8"/>'.format(
            x, y, width, height))
        self.under.append('<text class="title" x="{:g}" y="{:g}">{}</text>'.format(
            x + 10, y + 17, escape(' '.join(words[4:]))))

    def _box(self, words):
        x, y, width, height = (float(word) * UNIT for word in words[1:5])
        self.boxes[words[0]] = (x, y, width, height)
        title, _, small = ' '.join(words[5:]).partition(' | ')
        small = textwrap.wrap(small, max(int(width / 5.8), 8))
        self.over.append('<rect class="box" x="{:g}" y="{:g}" width="{:g}" height="{:g}" rx="6"/>'.format(
            x, y, width, height))
        middle = x + width / 2
        top = y + height / 2 + 5 - 7 * len(small)
        self.over.append('<text x="{:g}" y="{:g}">{}</text>'.format(middle, top, escape(title)))
        for i, line in enumerate(small):
            self.over.append('<text class="small" x="{:g}" y="{:g}">{}</text>'.format(
                middle, top + 15 + 13 * i, escape(line)))

    def _edge_point(self, name, towards):
        """Where the line from the middle of a box towards a point leaves the box."""
        x, y, width, height = self.boxes[name]
        middle = (x + width / 2, y + height / 2)
        dx, dy = towards[0] - middle[0], towards[1] - middle[1]
        scale = min(width / 2 / abs(dx) if dx else 1e9, height / 2 / abs(dy) if dy else 1e9)
        return middle[0] + dx * scale, middle[1] + dy * scale

    def _connect(self, words, heads):
        ends = [tuple(self.boxes[name][i] + self.boxes[name][i + 2] / 2 for i in (0, 1)) for name in words[:2]]
        begin, end = self._edge_point(words[0], ends[1]), self._edge_point(words[1], ends[0])
        self.lines.append('<line class="line" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" {}/>'.format(
            *begin, *end, heads))
        if words[2:]:
            self._text((begin[0] + end[0]) / 2, (begin[1] + end[1]) / 2 + 4, words[2:])

    def _arrow(self, words):
        self._connect(words, 'marker-end="url(#head)"')

    def _both(self, words):
        self._connect(words, 'marker-start="url(#head)" marker-end="url(#head)"')

    def _label(self, words):
        self._text(float(words[0]) * UNIT, float(words[1]) * UNIT, words[2:])

    def _text(self, x, y, words):
        for halo in (' halo', ''):  # so that it can be read where it crosses a line
            self.over.append('<text class="on-line{}" x="{:.1f}" y="{:.1f}">{}</text>'.format(
                halo, x, y, escape(' '.join(words))))

    def svg(self):
        """The picture as text."""
        width, height = (length + 2 * MARGIN for length in self.size)
        return '\n'.join([
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="{0} {0} {1:g} {2:g}" width="{1:g}" height="{2:g}">'.format(
                -MARGIN, width, height),
            '<style>{}</style>'.format(STYLE),
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="7" markerHeight="7" '
            'orient="auto-start-reverse"><path class="head" d="M0,0 L8,4 L0,8 z"/></marker></defs>',
            '<rect class="paper" x="{0}" y="{0}" width="{1:g}" height="{2:g}"/>'.format(-MARGIN, width, height),
        ] + self.under + self.lines + self.over + ['</svg>', ''])


def main():
    parser = argparse.ArgumentParser(description='Makes docs/pictures/*.svg from the texts beside them.')
    parser.add_argument('--check', action='store_true', help='change nothing; exit with 1 when a picture is not up to date')
    check = parser.parse_args().check
    stale = False
    for text in sorted(FOLDER.glob('*.txt')):
        made, file = Picture(text.read_text(encoding='utf-8')).svg(), text.with_suffix('.svg')
        if not check:
            file.write_text(made, encoding='utf-8')
        elif not file.exists() or file.read_text(encoding='utf-8') != made:
            stale = True
            print('{} is not up to date: run scripts/pictures.py'.format(file.name), file=sys.stderr)
    return 1 if stale else 0


if __name__ == '__main__':
    sys.exit(main())
