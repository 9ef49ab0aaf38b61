#!/bin/sh
# Prints the hosts of an elastic job, one "name:slots" a line, for hvdrun --host-discovery-script: those of the file
# ELASTIC_HOSTS (hosts.txt), without those whose names are in the file ELASTIC_DRAINED (drained.txt). Ranks on a host that is
# added to the second file leave at their next commit.
#
# Ends with an error when the hosts cannot be read: hvdrun then goes on with those that it has. No output and no error would
# mean that there is no host left.
set -eu

hosts=${ELASTIC_HOSTS:-hosts.txt}
drained=${ELASTIC_DRAINED:-drained.txt}
[ -e "$drained" ] || drained=/dev/null
exec awk -F '[: \t]' 'FILENAME == ARGV[1] { gone[$1] = 1; next } !($1 in gone)' "$drained" "$hosts"
