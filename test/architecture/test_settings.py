"""docs/environment.md, which is written by hand, has every variable of the settings table that the runtime reads in a worker."""
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
READ = re.compile(r"""(?:\b(?:GetEnv|Read\w+|Check\w+)\(\s*|\benviron(?:\.get\(|\[)\s*)["'](H[A-Z_]+)["']""")


def variables_of(table):
    return set(re.findall(r'\.env = "(\w+)"', table))


def missing(table, sources, page):
    read = {name for source in sources for name in READ.findall(source)}
    return sorted(name for name in variables_of(table) & read if f"`{name}`" not in page)


def sources_of_the_runtime():
    return [path.read_text() for path in sorted((ROOT / "runtime").rglob("*")) if path.suffix in (".cc", ".h", ".py")]


def test_the_page_has_the_variables_that_workers_read():
    table, sources = (ROOT / "configs/settings_table.cc").read_text(), sources_of_the_runtime()
    read = {name for source in sources for name in READ.findall(source)}
    for reader in ("HVD_CHUNK_KIB", "HOROVOD_LOG_LEVEL", "HOROVOD_TIMELINE", "HOROVOD_TORCH_BACKEND", "HVD_STALL_CHECK_STACKS"):
        assert reader in variables_of(table) & read, f"this test no longer sees where {reader} is read"
    assert not missing(table, sources, (ROOT / "docs/environment.md").read_text())


def test_a_variable_that_the_page_lacks_is_found():
    table = '.env = "HVD_A",\n.env = "HVD_B",'
    assert missing(table, ['GetEnv("HVD_A")', "os.environ.get('HVD_B')"], "| `HVD_A` |") == ["HVD_B"]
    assert missing(table, ['ReadWhole("HVD_A", 1, &a)'], "| HVD_A |") == ["HVD_A"]
    assert not missing(table, ["{'HVD_B': 1}", 'GetEnv("HVD_C")'], "")
