#!/bin/sh
# A worker that is hard to get rid of: deaf to SIGTERM, with a child, and with a grandchild in a session of its own.
trap '' TERM
setsid sh -c 'trap "" TERM; while :; do sleep 600; done' &
while :; do sleep 600; done
