"""The completions that are made from the settings table, in the shells themselves."""

import os
import pathlib
import re
import shutil
import subprocess
import time

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


# The behaviour of readline: words are split at COMP_WORDBREAKS, `=` among them.
BASH_WORDS = 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _hvdrun "$1"; printf "%s\\n" "${COMPREPLY[@]}"'


def bash_offers(*words):
    """The completions that bash offers for the last of the words of a line."""
    return [line for line in shell("bash", "-c", BASH_WORDS, BASH, *words) if line]


def test_two_words_follow_a_range():
    command_begins = '_command_offset() { COMPREPLY=("command at $1"); }; ' + BASH_WORDS

    def offers(*words):
        return [line for line in shell("bash", "-c", command_begins, BASH, "hvdrun", *words) if line]

    assert offers("--blacklist-cooldown-range", "1", "2", "--verb") == ["--verbose"]
    assert offers("--blacklist-cooldown-range", "=", "1,2", "--verb") == ["--verbose"]
    assert offers("--blacklist-cooldown-range=1,2", "--verb") == ["--verbose"]
    assert offers("--blacklist-cooldown-range", "1", "2", "true", "--verb") == ["command at 4"]
    assert "skip 2" in FISH.read_text()


def test_bash_completes_a_value_behind_an_equals_sign():
    assert bash_offers("hvdrun", "--bind-to", "=", "c") == ["core"]
    assert set(bash_offers("hvdrun", "--bind-to", "=")) == {"none", "core", "numa", "gpu"}
    assert bash_offers("hvdrun", "--bind-to", "c") == ["core"]
    assert bash_offers("hvdrun", "--bind-to", "=", "core", "--color", "=", "al") == ["always"]
    assert "--verbose" in bash_offers("hvdrun", "--bind-to", "=", "core", "--verb")


def test_a_name_with_a_blank_stays_one_word(tmp_path, monkeypatch):
    (tmp_path / "my dir").mkdir()
    (tmp_path / "my file.yaml").touch()
    monkeypatch.chdir(tmp_path)
    assert bash_offers("hvdrun", "--output-filename", "my") == ["my dir"]
    assert "my dir" in bash_offers("hvdrun", "-np", "2", "my")
    assert "my file.yaml" in bash_offers("hvdrun", "--config-file", "my")


def test_stop_offers_jobs():
    mark = f"{int(DEADLINE)}.{os.getpid()}"  # other jobs of this user may run here
    job = subprocess.Popen([hvdrun_path(), "-np", "1", "sleep", mark], stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + DEADLINE
        mine = []
        while not mine and time.monotonic() < end:
            table = subprocess.run([hvdrun_path(), "ps"], capture_output=True, text=True, timeout=DEADLINE).stdout
            mine = [line.split()[0] for line in table.splitlines() if mark in line]
            time.sleep(0.05)
        assert len(mine) == 1
        offered = bash_offers(hvdrun_path(), "stop", "")
        assert mine[0] in offered and "JOB" not in offered, (mine, offered)
        assert all(re.fullmatch("[0-9a-f]+|[a-z0-9]+-[0-9]+|--help|--after-step|-H|--hosts", name) for name in offered), offered
        for verb in ("stop", "top", "dump"):
            assert bash_offers(hvdrun_path(), verb, mine[0][:-1]) == mine
    finally:
        job.terminate()
        job.wait(timeout=DEADLINE)


def test_verbs_offer_their_options_and_help():
    assert bash_offers("hvdrun", "ps", "") == ["--help", "--json", "-H", "--hosts"]
    assert bash_offers("hvdrun", "env", "--") == ["--help"]


def test_verbs_offer_their_tools_and_options():
    assert set(bash_offers("hvdrun", "tune", "")) >= {"show", "export", "apply", "forget"}
    assert bash_offers("hvdrun", "tune", "--al") == ["--all"]
    assert bash_offers("hvdrun", "stop", "--af") == ["--after-step"]
    assert bash_offers("hvdrun", "trace", "rep") == ["report"]


def test_zsh_takes_the_file_and_calls_it():
    shell("zsh", "-f", "-n", ZSH)
    script = f"autoload -Uz compinit; fpath=({ZSH.parent} $fpath); compinit -u -D; print -r -- $_comps[hvdrun]"
    assert shell("zsh", "-f", "-c", script) == ["_hvdrun"]


def test_zsh_offers_jobs_and_values_behind_an_equals_sign(tmp_path):
    (tmp_path / "hvdrun").write_text("#!/bin/sh\nprintf 'JOB   AGE\\nabc1  0:01\\n'\n")
    (tmp_path / "hvdrun").chmod(0o755)
    script = f"""
zmodload zsh/zpty
zpty z 'PS1="> " zsh -f -i'
zpty -w z 'autoload -Uz compinit; fpath=({ZSH.parent} $fpath); compinit -u -D; PATH={tmp_path}:$PATH; print re""ady'
zpty -r z said '*ready*'
for line in 'hvdrun --bind-to=c' 'hvdrun stop '; do
  zpty -w -n z "$line"$'\\t'
  zpty -r -m z said '*(core|abc1)*' && print -r -- $said
  zpty -w z $'\\C-u'
done
zpty -d z
"""
    said = "\n".join(shell("zsh", "-f", "-c", script))
    assert "--bind-to=core" in said and "stop abc1" in said, said


def test_fish_offers_flags_and_choices():
    shell("fish", "--no-config", "--no-execute", FISH)
    for line, word in (("hvdrun --verb", "--verbose"), ("hvdrun doctor --js", "--json"), ("hvdrun doc", "doctor")):
        offered = shell("fish", "--no-config", "-c", f"source {FISH}; complete -C '{line}'")
        assert any(line.split("\t")[0] == word for line in offered), word
    assert "always" in [line.split("\t")[0] for line in shell("fish", "--no-config", "-c", f"source {FISH}; complete -C 'hvdrun --color al'")]
