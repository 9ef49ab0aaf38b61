"""What the chart makes of values, by Helm's own code."""

import pathlib

import helm_python
import yaml

REPO = pathlib.Path(__file__).resolve().parents[2]
CHART = REPO / "configs/helm/hvdrun"


def render(values):
    chart = helm_python.Chart.load(str(CHART))
    chart.validate_schema(values)
    return [object for text in chart.render(values).values() for object in yaml.safe_load_all(text) if object]


def of_kind(objects, kind):
    return next(object for object in objects if object["kind"] == kind)


def pod_of(objects, kind):
    """The pod of a StatefulSet or a Job."""
    return of_kind(objects, kind)["spec"]["template"]["spec"]


def container_of(objects, kind):
    return pod_of(objects, kind)["containers"][0]
