#!/bin/sh
# The script of a shell on another host: it finds this build of hvdrun there, asks for the bundle where there is none, and
# becomes the agent. remote_script.h has the lines that are exchanged. Arguments:
executable=$1 job=$2 version=$3 build=$4 machine=$5 use=$6 # use: auto, never or always
# In a step of many nodes also NODE=ID for each of them: the agent is the one of this node, and has no stream of its own.
how=--job
for word do
  case $word in "$SLURMD_NODENAME"=*) job=${word#*=} how=--dial ;; esac
done

# embed_script.cmake makes one line of this file, and hvdrun sends that line as one quoted argument through whatever login
# shell the user has there. So there is no exclamation mark here (csh), no backslash and no apostrophe (fish), and a case
# pattern stands on the line of its commands. For sh as POSIX has it; busybox, ksh and zsh run it, too.

similar=""   # a hvdrun of this version, but of another build
found=""     # what is there instead of this build
why=""       # why nothing could be sent
temporary="" # a folder in the cache, until the archive is unpacked
hash=""      # the command that prints the SHA-256 of a file
packing=tar  # how the bundle is packed: tar or gzip
old_umask=""
me=""        # our user id
my_group=""  # the id of our private group; "-": there is none
wrong=""     # what was wrong

have() { command -v "$1" >/dev/null 2>&1; }

cannot() {
  set -f
  # Unquoted, so that it is one line whatever a tool has said.
  # shellcheck disable=SC2048,SC2086
  echo hvdrun-agent "$job" cannot $*
  exit 127
}

go() {
  test "$old_umask" && umask "$old_umask"
  trap - EXIT HUP INT PIPE TERM
  echo "hvdrun-agent $job"
  HVD_JOB_ID=$job
  export HVD_JOB_ID
  exec "$1" agent $how "$job"
}

# Is this hvdrun the build that we want?
same() {
  answer=""
  test -f "$1" && test -x "$1" && answer=$("$1" agent --build </dev/null 2>/dev/null)
  test "$answer" = "$version $build"
}

# Is this group ours alone? Where umask is 002, all that a user makes may be written by the group of the user's name.
mine() {
  test "$my_group" || {
    my_group=-
    name=$(id -un)
    test "$name" = "$(id -gn)" &&
      case $({ getent group "$name" || grep "^$name:" /etc/group; } 2>/dev/null) in
        *:*:*:|*:*:*:"$name") my_group=$(id -g) ;;
      esac
  }
  test "$1" = "$my_group"
}

# May nobody but us and root change what this path leads to? Every folder and link on its way is looked at, all in one ls.
# In a folder with the sticky bit only the owner can change an entry.
ours() {
  at="" part="" rest=$1
  case $rest in /*) ;; *) rest=$(pwd)/$rest ;; esac
  set --
  while test "$rest" && test $# -lt 99; do
    case $rest in */*) part=${rest%%/*} rest=${rest#*/} ;; *) part=$rest rest="" ;; esac
    case $part in ""|.) continue ;; ..) at=${at%/*}; continue ;; esac
    at=$at/$part
    set -- "$@" "$at"
    test -h "$at" || continue
    part=$(ls -ld "$at")
    rest=${part#*"$at -> "}/$rest
    at=${at%/*}
    case $rest in /*) at="" ;; esac
  done
  wrong="it cannot be looked at"
  test -z "$rest" || return
  # shellcheck disable=SC2012
  list=$(ls -ldn / "$@") 2>/dev/null || return
  # The list is cut at its line breaks, and one of those comes behind the first name, which is "/".
  IFS=${list#*" /"}
  IFS=${IFS%"${IFS#?}"}
  # Folders of the user that owns / are root's: in a user namespace root may have another number.
  root="" wrong=""
  set -f
  for line in $list; do
    unset IFS
    file=/${line#*/}
    # shellcheck disable=SC2086
    set -- $line
    root=${root:-$3}
    # No process is made to learn our user id where the file says it.
    case $3$1 in
      0[dl-]*|${me}[dl-]*|${root}d*) ;;
      *) case $1 in [d-]*) test -O "$file" 2>/dev/null && me=$3 ;; esac
        me=${me:-$(id -u)}
        case $3$1 in ${me}[dl-]*) ;; *) wrong="$file belongs to user id $3"; break ;; esac ;;
    esac
    case $1 in
      l*|d????????[tT]*) ;;
      ????????w*) wrong="others may write to $file"; break ;;
      ?????w????+*) wrong="an access list may let others write to $file"; break ;;
      ?????w*) mine "$4" || { wrong="the group with id $4 may write to $file"; break; } ;;
    esac
  done
  unset IFS
  set +f
  test -z "$wrong"
}

# Becomes this hvdrun if it is the build that we want; notes what it is if not.
look() {
  test -f "$1" && test -x "$1" || return
  ours "$1" || {
    found="hvdrun at $1 is not run, because $wrong"
    echo "hvdrun-agent $job skips $1, because $wrong"
    return
  }
  same "$1" && go "$1"
  answer=${answer:-$("$1" --version </dev/null 2>/dev/null)}
  answer=${answer#hvdrun }
  case "$answer" in
    "$version"|"$version "*) similar=${similar:-$1} ;;
    *) found=${found:-"it has hvdrun ${answer:-of another version} ($1) and this is hvdrun $version"} ;;
  esac
}

if test "$use" = always; then
  found="--bundle always takes none that is installed"
else
  look "$executable"
  on_path=$(command -v hvdrun)
  test "$on_path" = "$executable" || look "$on_path"
fi
test "$similar" && found="it has another build of hvdrun $version ($similar)"
found=${found:-"hvdrun is neither at $executable nor on PATH"}
if test "$use" = never; then
  test "$similar" && go "$similar"
  cannot "$found; install hvdrun $version there, or let hvdrun be sent there (--bundle auto)"
fi

# In one of the caches? Only in a folder that is ours and in which nobody else may write.
me=${me:-$(id -u)}
safe() {
  wrong="others may write there"
  test -d "$1" || return
  cache=$1
  # shellcheck disable=SC2012,SC2046
  set -- $(ls -ldn "$1")
  case "$1 $3" in d?w??-??-?*" $me") ours "$cache" ;; *) false ;; esac
}
set -- "${XDG_CACHE_HOME:-$HOME/.cache}/hvdrun" "${TMPDIR:-/tmp}/hvdrun-$me" "/var/tmp/hvdrun-$me"
for cache do
  if safe "$cache" && same "$cache/$build/bin/hvdrun"; then
    { true >"$cache/$build/used"; } 2>/dev/null
    go "$cache/$build/bin/hvdrun"
  fi
done

# Can it be sent here?
for tool in openssl shasum sha256sum; do have $tool && hash=$tool; done
case $hash in shasum) hash="shasum -a 256" ;; openssl) hash="openssl dgst -sha256 -r" ;; esac
have gzip && packing=gzip
host_machine=$(uname -m)
if test "$host_machine" = "$machine"; then
  for tool in tar head ls mv ${hash:-sha256sum}; do
    case $tool in -*|dgst|256) ;; *) have "$tool" || why="the host has no $tool" ;; esac
  done
else
  why="it is built for $machine and the host is $host_machine"
fi

clean() {
  test "$temporary" && rm -rf "$temporary"
  temporary=""
}
no() {
  why="$why${why:+, }$cache: $*"
  clean
}

if test -z "$why"; then
  old_umask=$(umask)
  umask 077
  trap clean EXIT
  trap "exit 1" HUP INT PIPE TERM
  for cache do
    wrong=$({
      mkdir -p "${cache%/*}" && { test -d "$cache" || mkdir "$cache" || test -d "$cache"; }
    } 2>&1) || { no "$wrong"; continue; }
    safe "$cache" || { no "$wrong"; continue; }
    temporary=$cache/new.$job
    # Programs may not be run from everywhere.
    wrong=$({
      mkdir "$temporary" && echo : >"$temporary/x" && chmod 700 "$temporary/x" && "$temporary/x"
    } 2>&1) || { no "$wrong"; continue; }

    echo "hvdrun-agent $job wants $packing"
    while LC_ALL=C read -r word size sum; do test "$word" = hvdrun-bundle && break; done
    test "$word" = hvdrun-bundle ||
      cannot "$found, and its shell does not read what is sent there; install hvdrun $version there"
    wrong=$(
      exec 2>&1
      # Bytes that do not fit are read all the same.
      head -c "$size" | { cat >"$temporary/b" || { cat >/dev/null; false; }; } || exit 1
      # Unquoted: a command with its options.
      # shellcheck disable=SC2086
      came=$($hash "$temporary/b")
      test "${came%% *}" = "$sum" || { echo other bytes came than were sent; exit 1; }
      mkdir "$temporary/i" && cd "$temporary/i" && true >used || exit 1
      if test $packing = gzip; then gzip -dc <../b; else cat ../b; fi | tar -xf - || exit 1
      answer=$(bin/hvdrun agent --build </dev/null 2>&1)
      test "$answer" = "$version $build" ||
        { echo "what was sent does not run there: $answer"; exit 1; }
    ) || { no "$wrong"; continue; }

    # Other jobs may do the same now: the second takes what is there. A bundle that is there and is not
    # right is removed.
    test -e "$cache/$build" &&
      { same "$cache/$build/bin/hvdrun" || mv "$cache/$build" "$temporary/old"; }
    mv "$temporary/i" "$cache/$build"
    rm -rf "$cache/$build/i"
    clean
    # Builds that were not used for a month are removed. Others may keep something here, too.
    for used in "$cache"/new.* "$cache"/*/used; do
      test "$(find "$used" -prune -mtime +30 2>/dev/null)" && rm -rf "${used%/used}"
    done
    same "$cache/$build/bin/hvdrun" && go "$cache/$build/bin/hvdrun"
    no "it did not stay there"
  done
fi
test "$similar" && go "$similar"
cannot "$found, and it could not be sent there: $why; install hvdrun $version there"
