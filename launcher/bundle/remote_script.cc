#include "launcher/bundle/remote_script.h"

#include "configs/message_text.h"

namespace hvd {
namespace {

constexpr std::string_view kWants = "wants ", kCannot = "cannot ", kSkips = "skips ";
constexpr size_t kMostSaid = 800;

// For sh as POSIX has it, and for every login shell on its way there: no line break and no "!"
// (csh), no backslash before another or an apostrophe (fish). All of it is one argument, so names
// have one letter:
//   x path here, j job, v version, b build id, m machine, w auto, never or always
//   s a hvdrun of this version, o what is there instead, e why nothing could be sent
//   d the cache's folder, t a temporary one in it, h what hashes, z how the bundle is packed
//   u the former umask, n our user id, a the id of our private group ("-": there is none)
//   r what was wrong
constexpr std::string_view kScript =
    "x=$1 j=$2 v=$3 b=$4 m=$5 w=$6 s= o= e= t= h= u= n= a= r= z=tar; "
    "have() { command -v $1 >/dev/null 2>&1; }; "
    // Unquoted, so that it is one line whatever a tool has said.
    "cannot() { set -f; echo hvdrun-agent $j cannot $*; exit 127; }; "
    "go() { test \"$u\" && umask $u; trap - 0 1 2 13 15; echo \"hvdrun-agent $j\"; "
    "HVD_JOB_ID=$j; export HVD_JOB_ID; exec \"$1\" agent --job \"$j\"; }; "
    // Is this hvdrun the build that we want?
    "same() { i=; test -f \"$1\" && test -x \"$1\" && i=$(\"$1\" agent --build </dev/null "
    "2>/dev/null); "
    "test \"$i\" = \"$v $b\"; }; "
    // Is this group ours alone? Where umask is 002, what a user makes may be written by the group
    // of the user's name.
    "mine() { test \"$a\" || { a=-; i=$(id -un); test \"$i\" = \"$(id -gn)\" && "
    "case $({ getent group \"$i\" || grep \"^$i:\" /etc/group; } 2>/dev/null) in "
    "*:*:*:|*:*:*:\"$i\") a=$(id -g);; esac; }; test \"$1\" = \"$a\"; }; "
    // May nobody but us and root change what this path leads to? Every folder and link on its way
    // is looked at, all in one ls. In a folder with the sticky bit only the owner can change an
    // entry. Folders of the user that owns / are root's: in a user namespace root may have another
    // number.
    "ours() { q= c= f=$1; case $f in /*) ;; *) f=$(pwd)/$f;; esac; set --; "
    "while test \"$f\" && test $# -lt 99; do "
    "case $f in */*) c=${f%%/*}; f=${f#*/};; *) c=$f; f=;; esac; "
    "case $c in \"\"|.) continue;; ..) q=${q%/*}; continue;; esac; "
    "q=$q/$c; set -- \"$@\" \"$q\"; test -h \"$q\" || continue; "
    "c=$(ls -ld \"$q\"); f=${c#*\"$q -> \"}/$f; q=${q%/*}; case $f in /*) q=;; esac; done; "
    "r=\"it cannot be looked at\"; test -z \"$f\" || return; "
    "c=$(ls -ldn / \"$@\") 2>/dev/null || return; "
    "IFS=${c#*\" /\"}; IFS=${IFS%\"${IFS#?}\"}; k= r=; set -f; "
    "for y in $c; do unset IFS; f=/${y#*/}; set -- $y; k=${k:-$3}; "
    // No process is made to learn who we are where the file says it.
    "case $3$1 in 0[dl-]*|$n[dl-]*|${k}d*) ;; *) "
    "case $1 in [d-]*) test -O \"$f\" 2>/dev/null && n=$3;; esac; n=${n:-$(id -u)}; "
    "case $3$1 in $n[dl-]*) ;; *) r=\"$f belongs to user id $3\"; break;; esac;; esac; "
    "case $1 in l*|d????????[tT]*) ;; ????????w*) r=\"others may write to $f\"; break;; "
    "?????w????+*) r=\"an access list may let others write to $f\"; break;; "
    "?????w*) mine $4 || { r=\"the group with id $4 may write to $f\"; break; };; esac; done; "
    "unset IFS; set +f; test -z \"$r\"; }; "
    "look() { test -f \"$1\" && test -x \"$1\" || return; "
    "ours \"$1\" || { o=\"hvdrun at $1 is not run, because $r\"; "
    "echo \"hvdrun-agent $j skips $1, because $r\"; return; }; "
    "same \"$1\" && go \"$1\"; "
    "i=${i:-$(\"$1\" --version </dev/null 2>/dev/null)}; "
    "case \"$i\" in \"$v\"|\"$v \"*) s=${s:-$1};; "
    "*) o=${o:-\"it has hvdrun ${i:-of another version} ($1) and this is hvdrun $v\"};; esac; }; "
    "if test $w = always; then o=\"--bundle always takes none that is installed\"; "
    "else look \"$x\"; p=$(command -v hvdrun); test \"$p\" = \"$x\" || look \"$p\"; fi; "
    "test \"$s\" && o=\"it has another build of hvdrun $v ($s)\"; "
    "o=${o:-\"hvdrun is neither at $x nor on PATH\"}; "
    "if test $w = never; then test \"$s\" && go \"$s\"; "
    "cannot \"$o; install hvdrun $v there, or let hvdrun be sent there (--bundle auto)\"; fi; "
    // In one of the caches? Only in a folder that is ours and in which nobody else may write.
    "n=${n:-$(id -u)}; "
    "safe() { r=\"others may write there\"; test -d \"$1\" || return; d=$1; set -- $(ls -ldn "
    "\"$1\"); "
    "case \"$1 $3\" in d?w?"
    "?-?"
    "?-?*\" $n\") ours \"$d\";; *) false;; esac; }; "
    "set -- \"${XDG_CACHE_HOME:-$HOME/.cache}/hvdrun\" \"${TMPDIR:-/tmp}/hvdrun-$n\" "
    "\"/var/tmp/hvdrun-$n\"; "
    "for d do if safe \"$d\" && same \"$d/$b/bin/hvdrun\"; then "
    "{ true >\"$d/$b/used\"; } 2>/dev/null; go \"$d/$b/bin/hvdrun\"; fi; done; "
    // Can it be sent here?
    "for c in openssl shasum sha256sum; do have $c && h=$c; done; "
    "case $h in shasum) h=\"shasum -a 256\";; openssl) h=\"openssl dgst -sha256 -r\";; esac; "
    "have gzip && z=gzip; p=$(uname -m); "
    "if test \"$p\" = \"$m\"; then "
    "for c in tar head ls mv ${h:-sha256sum}; do case $c in -*|dgst|256) ;; "
    "*) have $c || e=\"the host has no $c\";; esac; done; "
    "else e=\"it is built for $m and the host is $p\"; fi; "
    "no() { e=\"$e${e:+, }$d: $*\"; clean; }; clean() { test \"$t\" && rm -rf \"$t\"; t=; }; "
    "if test -z \"$e\"; then u=$(umask); umask 077; trap clean 0; trap \"exit 1\" 1 2 13 15; for d "
    "do "
    "r=$({ mkdir -p \"${d%/*}\" && { test -d \"$d\" || mkdir \"$d\" || test -d \"$d\"; }; } 2>&1) "
    "|| { no \"$r\"; continue; }; "
    "safe \"$d\" || { no \"$r\"; continue; }; t=$d/new.$j; "
    // Programs may not be run from everywhere.
    "r=$({ mkdir \"$t\" && echo : >\"$t/x\" && chmod 700 \"$t/x\" && \"$t/x\"; } 2>&1) || "
    "{ no \"$r\"; continue; }; "
    "echo \"hvdrun-agent $j wants $z\"; "
    "while LC_ALL=C read -r l k y; do test \"$l\" = hvdrun-bundle && break; done; "
    "test \"$l\" = hvdrun-bundle || cannot \"$o, and its shell does not read what is sent there; "
    "install hvdrun $v there\"; "
    // What does not fit is read all the same.
    "r=$(exec 2>&1; head -c \"$k\" | { cat >\"$t/b\" || { cat >/dev/null; false; }; } || exit 1; "
    "g=$($h \"$t/b\"); test \"${g%% *}\" = \"$y\" || { echo other bytes came than were sent; exit "
    "1; }; "
    "mkdir \"$t/i\" && cd \"$t/i\" && true >used || exit 1; "
    "if test $z = gzip; then gzip -dc <../b; else cat ../b; fi | tar -xf - || exit 1; "
    "g=$(bin/hvdrun agent --build </dev/null 2>&1); test \"$g\" = \"$v $b\" || "
    "{ echo \"what was sent does not run there: $g\"; exit 1; }) || { no \"$r\"; continue; }; "
    // Others may do the same now: whoever comes second takes what is there. What is there and is
    // not right goes.
    "test -e \"$d/$b\" && { same \"$d/$b/bin/hvdrun\" || mv \"$d/$b\" \"$t/old\"; }; "
    "mv \"$t/i\" \"$d/$b\"; rm -rf \"$d/$b/i\"; clean; "
    // What was not used for a month goes. Others may keep something here, too.
    "for l in \"$d\"/new.* \"$d\"/*/used; do "
    "test \"$(find \"$l\" -prune -mtime +30 2>/dev/null)\" && rm -rf \"${l%/used}\"; done; "
    "same \"$d/$b/bin/hvdrun\" && go \"$d/$b/bin/hvdrun\"; no \"it did not stay there\"; done; fi; "
    "test \"$s\" && go \"$s\"; "
    "cannot \"$o, and it could not be sent there: $e; install hvdrun $v there\"";

const char* WordOf(BundleUse use) {
  switch (use) {
    case BundleUse::kAuto: return "auto";
    case BundleUse::kNever: return "never";
    case BundleUse::kAlways: return "always";
  }
  return "auto";
}

}  // namespace

std::string ShellWord(const std::string& word) {
  std::string quoted = "'";
  for (char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string RemoteAgentCommand(const RemoteAgent& agent) {
  std::string command = "exec sh -c " + ShellWord(std::string(kScript)) + " hvdrun";
  for (const std::string& word : {agent.executable, agent.job_id, agent.version, agent.build_id,
                                  agent.machine, std::string(WordOf(agent.bundle))})
    command += " " + ShellWord(word);
  return command;
}

std::string AgentGreeting(const std::string& job_id) { return "hvdrun-agent " + job_id + "\n"; }

std::optional<ScriptWants> ParseScriptWants(std::string_view words) {
  if (!words.starts_with(kWants)) return std::nullopt;
  words.remove_prefix(kWants.size());
  if (words == "gzip") return ScriptWants{Packing::kGzip};
  if (words == "tar") return ScriptWants{Packing::kTar};
  return std::nullopt;
}

std::optional<std::string> ParseScriptCannot(std::string_view words) {
  if (!words.starts_with(kCannot)) return std::nullopt;
  return Printable(words.substr(kCannot.size()), kMostSaid);
}

std::optional<std::string> ParseScriptSkips(std::string_view words) {
  if (!words.starts_with(kSkips)) return std::nullopt;
  return "hvdrun does not run " + Printable(words.substr(kSkips.size()), kMostSaid);
}

std::string BundleHeader(const Bundle& bundle) {
  return "\nhvdrun-bundle " + std::to_string(bundle.bytes.size()) + " " + bundle.sha256 + "\n";
}

}  // namespace hvd
