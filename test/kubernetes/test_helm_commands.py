"""The commands of helm in the guides: the chart takes their values, and each of them changes what it makes."""

import re
import shlex

import pytest
import yaml
from test_manifests import CHART, REPO, complaints, render

PAGES = sorted([*REPO.glob("docs/*.md"), *REPO.glob("configs/helm/*/README.md"), REPO / "README.md", *REPO.glob("examples/**/README.md")])


def settings_of(words):
    return [words[place + 1] for place, word in enumerate(words) if word == "--set"]


def commands():
    """(chart or None, [NAME.NAME=VALUE ...]) of each command, and of each span that names values alone."""
    for page in PAGES:
        text = page.read_text().replace("\\\n", "")
        for words in map(shlex.split, re.findall(r"^(?: {4}|\$ )?(helm (?:install|upgrade) .*)$", text, re.M)):
            yield words[3], settings_of(words)
        for words in map(shlex.split, re.findall(r"`(--set [^`]*)`", text)):
            yield None, settings_of(words)


def values_of(settings):
    values = {}
    for setting in settings:
        path, _, value = setting.partition("=")
        *folders, name = path.split(".")
        place = values
        for folder in folders:
            place = place.setdefault(folder, {})
        place[name] = yaml.safe_load(value)
    return values


def without_key(objects):
    return [object for object in objects if object["kind"] != "Secret"]


COMMANDS = sorted({(chart, tuple(settings)) for chart, settings in commands()}, key=str)


def test_the_guides_have_such_commands():
    assert {chart for chart, _ in COMMANDS} == {None, str(CHART.relative_to(REPO))}


@pytest.mark.parametrize("settings", [settings for _, settings in COMMANDS], ids=",".join)
def test_the_chart_takes_the_values_of_a_page_and_each_has_an_effect(settings):
    made = render(values_of(settings))
    assert complaints(made) == []
    for left_out in settings:
        others = [setting for setting in settings if setting != left_out]
        assert without_key(render(values_of(others))) != without_key(made), f"{left_out} has no effect"
