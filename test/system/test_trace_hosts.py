"""`hvdrun trace report` of a job over several hosts, one of which has a slow link."""

import json
import re

import pytest
from conftest import has_modules
from host_rig import WHY_NOT, rig_of
from test_timeline import needs_gloo, works
from test_trace_tools import made

pytestmark = [pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT), needs_gloo,
              pytest.mark.skipif(not has_modules("numpy"), reason="the workers need NumPy")]
rig = rig_of(3)


def test_a_host_with_slow_links_is_named(hosts_run, rig, tmp_path):
    path = tmp_path / "out.json"
    rig.hosts[1].slow_down("40mbit")
    try:
        job = hosts_run("-np", 3, "-H", "hvd1,hvd2,hvd3", "--timeline", path, *works("large", 4, 200_000))
    finally:
        rig.hosts[1].slow_down(None)
    assert job.code == 0, job.out + job.err
    text = re.sub(r"\s+", " ", made("report", path))
    assert "All links of host hvd2 are slow:" in text, text
    links = json.loads(made("report", path, "--json"))["links"]
    speeds = {(link["from"], link["to"]): link["bytes_per_second"] for link in links}
    assert max(speed for ends, speed in speeds.items() if "hvd2" in ends) < 40e6 / 8 * 1.5, speeds
    rig.nothing_left()
