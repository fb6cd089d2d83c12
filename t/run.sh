#!/bin/sh
# Runs one test for prove: a timeout is a failure, no core files. Called as
# `prove --exec t/run.sh TEST`, so TEST is a unit test binary or a script.
# shellcheck disable=SC3045 # every sh that Debian has knows -c
ulimit -c 0
case $1 in
*.sh) set -- bash "$@" ;;
esac
exec timeout -k 5 "${SMCO_TEST_TIMEOUT:-180}" "$@"
