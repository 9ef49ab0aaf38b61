"""The completions that are made from the settings table, in the shells themselves."""

import pathlib
import shutil
import subprocess

import pytest
from conftest import DEADLINE, hvdrun_path

SHARE = pathlib.Path(hvdrun_path()).resolve().parents[1] / "share"
BASH = SHARE / "bash-completion" / "completions" / "hvdrun"
ZSH = SHARE / "zsh" / "site-functions" / "_hvdrun"
FISH = SHARE / "fish" / "vendor_completions.d" / "hvdrun.fish"


def shell(name, *args):
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is not installed here")
    done = subprocess.run([program, *map(str, args)], capture_output=True, text=True, timeout=DEADLINE)
    assert done.returncode == 0 and done.stderr == "", done
    return done.stdout.splitlines()


def test_bash_offers_flags_and_choices():
    script = f"source {BASH}; f=$(complete -p hvdrun | grep -o -- '-F [^ ]*' | cut -c4-); " \
             'COMP_WORDS=(hvdrun "$1" "${2-}"); COMP_CWORD=$(($# - 0)); $f hvdrun; printf "%s\\n" "${COMPREPLY[@]}"'
    assert "--verbose" in shell("bash", "-c", script, "bash", "--verb")
    assert shell("bash", "-c", script, "bash", "--color", "al") == ["always"]
    assert "doctor" in shell("bash", "-c", script, "bash", "doc")
    assert "--json" in shell("bash", "-c", script, "bash", "doctor", "--js")


def test_zsh_takes_the_file_and_calls_it():
    shell("zsh", "-f", "-n", ZSH)
    script = f"autoload -Uz compinit; fpath=({ZSH.parent} $fpath); compinit -u -D; print -r -- $_comps[hvdrun]"
    assert shell("zsh", "-f", "-c", script) == ["_hvdrun"]


def test_fish_offers_flags_and_choices():
    shell("fish", "--no-config", "--no-execute", FISH)
    for line, word in (("hvdrun --verb", "--verbose"), ("hvdrun doctor --js", "--json"), ("hvdrun doc", "doctor")):
        offered = shell("fish", "--no-config", "-c", f"source {FISH}; complete -C '{line}'")
        assert any(line.split("\t")[0] == word for line in offered), word
    assert "always" in [line.split("\t")[0] for line in shell("fish", "--no-config", "-c", f"source {FISH}; complete -C 'hvdrun --color al'")]
